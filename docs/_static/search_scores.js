// The order of the pages that a search finds: derivations and config keys come before measurements and other software.
var Scorer = {
  objNameMatch: 11, objPartialMatch: 6, objPrio: {0: 15, 1: 5, 2: -5}, objPrioDefault: 0,
  title: 15, partialTitle: 7, term: 5, partialTerm: 2,
  score: ([page, title, anchor, description, score]) => {
    const factors = {"theory/": 2, "api/config": 2, "api/names": 2, benchmarks: 0.2, comparison: 0.2, scaling: 0.2, changelog: 0.2};
    const start = Object.keys(factors).find((name) => page.startsWith(name));
    return score * (factors[start] ?? 1);
  },
};
