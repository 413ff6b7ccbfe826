// Ranks the results of the search (html_search_scorer). Sphinx gives a page the score of its best word; here
// all words of the query count, and most in headings. A heading that has the whole query is first, and of
// equal pages those to learn from come before the reference.
var Scorer = {
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
  score: ([docname, , , , score, , kind]) => {
    if (kind === SearchResultKind.title) return score + Scorer.title;
    const file = Search._index.docnames.indexOf(docname);
    const query = new URLSearchParams(window.location.search).get("q") || "";
    const words = [...Search._parseQuery(query)[1]];
    const inHeadings = words.filter((word) => [Search._index.titleterms[word]].flat().includes(file));
    const folder = docname.split("/")[0];
    const bonus = { tutorial: 2, concepts: 2, guides: 2, reference: 1 }[folder] || 0;
    return score / 2 + (Scorer.title * inHeadings.length) / words.length + bonus;
  },
};
