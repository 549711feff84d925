// The map of a test: colour is the effect size, a ring marks significant nodes, open circles are nodes about which the
// data say nothing.
const isFound = data.verdicts.state.map((state) => state === 2);
showPage(() => drawNodes(data.effect, {
  label: "effect size", words: data.verdicts.words,
  range: [0, Math.max(1, ...data.effect.filter((value) => value !== null))],
  scale: scaleOf(),
  open: data.verdicts.state.map((state) => state === 0),
  line: {
    color: isFound.map((found) => colour(found ? "ink" : "behind")),
    width: data.verdicts.state.map((state) => [2.2, 0.8, 2.2][state]),
  },
}));
