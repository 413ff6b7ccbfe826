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
    // The page of problem types is the one about status codes.
    const isHeading = (word) => [Search._index.titleterms[word]].flat().includes(file) || (docname === "problems" && /^\d+$/.test(word));
    const inHeadings = words.filter(isHeading);
    const folder = docname.split("/")[0];
    const bonus = { tutorial: 2, concepts: 2, guides: 2, reference: 1 }[folder] || 0;
    return score / 2 + (Scorer.title * inHeadings.length) / words.length + bonus;
  },
};
// Sphinx's search ignores numbers. The index has those of three digits (conf.py).
const parseQuery = Search._parseQuery;
Search._parseQuery = (query) => {
  const parsed = parseQuery(query);
  for (const number of query.match(/\b\d{3}\b/g) || []) [parsed[1], parsed[3]].forEach((terms) => terms.add(number));
  return parsed;
};
