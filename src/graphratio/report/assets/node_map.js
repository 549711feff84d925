// Pages with one map of nodes and one table below it.
const drawNodes = (values, { label, title = label, words, range, scale, line, open = values.map((value) => value === null) }) => {
  const { x, y, edges } = data.map;
  const places = data.nodes.map((_, i) => i);
  const size = places.length > 1500 ? 5 : places.length > 300 ? 8 : places.length > 100 ? 10 : 13;
  Plotly.react("map", [{
    ...barTrace("map"), x, y, mode: "markers", hoverinfo: "text",
    hovertext: places.map((i) => `${shortText(data.nodes[i], 40)}<br>${label} ${number(values[i], 2)}`
      + `<br>${asText(words[i])}`),
    marker: {
      size, color: values.map((value) => value ?? 0), cmin: range[0], cmax: range[1], colorscale: scale,
      symbol: open.map((empty) => (empty ? "circle-open" : "circle")),
      line,
      colorbar: mapBar("map", title),
    },
  }], mapLayout(data.map, "bar", { shapes: edges.length <= 8000 ? edgeShapes(data.map) : [] }), stillConfig);
};

// Search the table, and draw the map now, in print and in other colours.
const showPage = (draw) => {
  byId("search").addEventListener("input", (event) => {
    const query = event.target.value.trim().toLowerCase();
    document.querySelectorAll("#nodes tbody tr").forEach((row) => {
      row.hidden = query !== "" && !row.firstElementChild.textContent.toLowerCase().includes(query);
    });
  });
  redrawWith(draw);
  document.addEventListener("charts-ready", () => {
    draw();
    document.documentElement.dataset.ready = Math.round(performance.now());
  });
};
