// The map of a test: colour is the effect size, a ring marks significant nodes.
showPage(() => drawNodes(data.effect, {
  label: "effect size", words: data.verdict,
  range: [0, Math.max(1, ...data.effect.filter((value) => value !== null))],
  scale: isDark()
    ? [[0, "#2d3340"], [0.2, "#3b528b"], [0.45, "#21918c"], [0.7, "#5ec962"], [1, "#fde725"]]
    : [[0, "#f7f3d0"], [0.25, "#a8dba0"], [0.5, "#3fb0a0"], [0.75, "#2c6a95"], [1, "#33115c"]],
  line: {
    color: data.rejected.map((rejected) => colour(rejected ? "target" : "quiet")),
    width: data.rejected.map((rejected) => (rejected ? 2.5 : 0.8)),
  },
}));
