// The map of a test: colour is the effect size, a ring marks significant nodes.
const isFound = data.verdicts.state.map((state) => state === 2);
showPage(() => drawNodes(data.effect, {
  label: "effect size", words: data.verdicts.words,
  range: [0, Math.max(1, ...data.effect.filter((value) => value !== null))],
  scale: scaleOf(),
  line: {
    color: isFound.map((found) => colour(found ? "ink" : "behind")),
    width: isFound.map((found) => (found ? 2.2 : 0.8)),
  },
}));
