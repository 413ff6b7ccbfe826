// Before the page is painted: the theme that the reader chose with the button of the header.
document.body.dataset.theme = localStorage.getItem("theme") || "auto";
