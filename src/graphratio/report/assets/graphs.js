// The map of a comparison: colour is how far neighbours change as the node does.
showPage(() => drawNodes(data.agreement, {
  label: "agreement", title: "agrees", range: [-1, 1], words: data.words.map((word) => `neighbours in its region: ${word}`),
  scale: [[0, colour("target")], [0.5, isDark() ? "#3a3f47" : "#f1f1ee"], [1, colour("reference")]],
  line: { color: colour("quiet"), width: 0.8 },
}));
