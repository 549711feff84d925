// The map of a comparison: colour is how far neighbours change as the node does.
const drawAgreement = () => {
  const { x, y, edges } = data.map;
  const places = data.nodes.map((_, i) => i);
  const size = places.length > 1500 ? 5 : places.length > 300 ? 8 : 12;
  const scale = [[0, colour("target")], [0.5, isDark() ? "#3a3f47" : "#f1f1ee"], [1, colour("reference")]];
  Plotly.react("map", [{
    x, y, mode: "markers", hoverinfo: "text",
    hovertext: places.map((i) => `${shortText(data.nodes[i], 40)}<br>agreement ${number(data.agreement[i], 2)}`
      + `<br>neighbours in its region: ${asText(data.words[i])}`),
    marker: {
      size, color: data.agreement.map((value) => value ?? 0), cmin: -1, cmax: 1, colorscale: scale,
      symbol: places.map((i) => (data.agreement[i] === null ? "circle-open" : "circle")),
      line: { color: colour("quiet"), width: 0.8 },
      colorbar: { title: { text: "agrees", side: "top", font: { size: 12 } }, thickness: 12,
        outlinewidth: 0, len: 0.9, tickfont: { size: 11 } },
    },
  }], mapLayout(data.map, 92, { shapes: edges.length <= 8000 ? edgeShapes(data.map) : [] }), stillConfig);
};

byId("search").addEventListener("input", (event) => {
  const query = event.target.value.trim().toLowerCase();
  document.querySelectorAll("#nodes tbody tr").forEach((row) => {
    row.hidden = query !== "" && !row.firstElementChild.textContent.toLowerCase().includes(query);
  });
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAgreement);
addEventListener("beforeprint", () => { printing = true; drawAgreement(); });
addEventListener("afterprint", () => { printing = false; drawAgreement(); });
document.addEventListener("charts-ready", () => {
  drawAgreement();
  document.documentElement.dataset.ready = Math.round(performance.now());
});
