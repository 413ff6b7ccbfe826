// Data tables: the selection, and menus that stay open while their table is replaced. Every table works
// without this file.

const $ = (selector, root = document) => root.querySelector(selector);
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const BOXES = ".data-table tbody input[type=checkbox]";
const boxOf = (row) => row && $("input[type=checkbox]", row);
const focusedRow = () => document.activeElement?.closest(".data-table tbody tr");

// Selection --------------------------------------------------------------------------------------

// The checkbox that was changed last: the other end of a range.
let anchor = null;

function showSelection() {
  const all = $$(BOXES);
  const count = all.filter((box) => box.checked).length;
  const label = $("[data-count-selected]");
  if (label) label.textContent = `${count} selected`;
  const every = $("[data-check-all]");
  if (!every) return;
  every.checked = count > 0 && count === all.length;
  every.indeterminate = count > 0 && count < all.length;
}

function selectRange(box) {
  const all = $$(BOXES);
  const ends = [all.indexOf(anchor), all.indexOf(box)].sort((a, b) => a - b);
  if (ends[0] < 0) return;
  for (const each of all.slice(ends[0], ends[1] + 1)) each.checked = box.checked;
}

document.addEventListener("click", (event) => {
  if (!event.target.matches(BOXES)) return;
  if (event.shiftKey) selectRange(event.target);
  anchor = event.target;
  showSelection();
});
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-check-all]")) {
    for (const box of $$(BOXES)) box.checked = event.target.checked;
  }
  if (event.target.closest(".data-table")) showSelection();
});
document.addEventListener("reset", (event) => {
  if (event.target.matches(".table-form")) setTimeout(showSelection); // after the fields are reset
});
document.addEventListener("htmx:after:swap", showSelection);
showSelection(); // the browser keeps checkboxes when it reloads a page

// Keys -------------------------------------------------------------------------------------------

function toggleRow() {
  const box = boxOf(focusedRow());
  if (!box) return false;
  box.click();
  return true;
}

function clearSelection() {
  const box = $(`${BOXES}:checked`);
  box?.form.reset();
  return Boolean(box);
}

const KEYS = { x: toggleRow, Escape: clearSelection };

// Before app.js, whose keys apply if a table does not use them.
document.addEventListener(
  "keydown",
  (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
    if (event.target.matches?.("input:not([type=checkbox]), textarea, select, [contenteditable]")) return;
    if ($("dialog[open], [popover]:popover-open")) return;
    if (!KEYS[event.key]()) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  },
  true,
);

// Menus ------------------------------------------------------------------------------------------

// A choice in the menu of columns replaces the table with its menu, which stays open for the next.
let menuId = "";
let controlId = "";
document.addEventListener("htmx:before:swap", () => {
  menuId = $("[data-keep-open]:popover-open")?.id ?? "";
  controlId = document.activeElement?.id ?? "";
});
document.addEventListener(
  "htmx:after:swap",
  () => {
    const menu = menuId && document.getElementById(menuId);
    menuId = "";
    if (!menu || menu.matches(":popover-open")) return;
    menu.showPopover();
    (document.getElementById(controlId) ?? $("input:not([type=hidden])", menu))?.focus();
  },
  true, // before app.js moves the focus to the table
);
