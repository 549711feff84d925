// The panel of one node.
const panels = data.panels;
// Where the charts of a node are; on a page of many nodes only the most changed have some.
const charted = panels.nodes && new Map(panels.nodes.map((node, place) => [node, place]));
const placeOf = (i) => (charted ? charted.get(i) : i);
const hasCharts = (i) => placeOf(i) !== undefined;

const unpack = (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return Array.from(new Uint16Array(bytes.buffer), (code) => code / 65535);
};
const onAxis = (share, i, j) => {
  const low = panels.low[placeOf(i)][j], high = panels.high[placeOf(i)][j];
  const value = low + share * (high - low);
  return panels.features[j].log ? Math.exp(value) : value;
};
const spaced = (n, i, j) => Array.from({ length: n }, (_, k) => onAxis(k / (n - 1), i, j));
// The names of levels on an axis; numbers need none.
const levelTicks = (levels) => (levels.length
  ? { tickvals: levels.map((_, k) => k), ticktext: levels.map((level) => shortText(level, 14)) } : {});
const axisOf = (j) => (panels.features[j].log ? { type: "log" } : levelTicks(panels.features[j].levels));
const faint = (name) => colour(name) + "40";

// How far every point of a curve is from the node's own data, in bins of the histogram.
const binsToData = (counts, n) => {
  const filled = counts.flatMap((count, k) => (count > 0 ? [k] : []));
  return Array.from({ length: n }, (_, k) => {
    const bin = Math.min(counts.length - 1, Math.floor((k / (n - 1)) * counts.length));
    return Math.min(...filled.map((other) => Math.abs(other - bin)));
  });
};
// Without data there is no ratio to show: curves are dotted beside the data and end beyond.
const besideData = 2;

const drawFeature = (target, i, j) => {
  const [reference, after, beyond] = panels.histograms[placeOf(i)][j];
  const edges = spaced(reference.length + 1, i, j);
  const sample = (counts, name, place) => {
    const total = counts.reduce((sum, count) => sum + count, 0) || 1;
    const shares = counts.map((count) => count / total);
    return { x: edges, y: [...shares, shares.at(-1)], name: shortText(name, 30), mode: "lines",
      line: { shape: "hv", width: 1.5, color: colour(place) }, fill: "tozeroy", fillcolor: faint(place),
      hovertemplate: "%{y:.1%}", legendrank: 1 };
  };
  const grid = spaced(panels.grid, i, j);
  const all = unpack(panels.curves[placeOf(i)]).map((share) => share * panels.top[placeOf(i)]);
  const width = panels.features.length * panels.grid;
  const curve = (place) => all.slice(place * width + j * panels.grid, place * width + (j + 1) * panels.grid);
  const shape = panels.features[j].levels.length ? "hvh" : "linear";
  const distance = binsToData(reference.map((count, k) => count + after[k]), panels.grid);
  const near = (values) => values.map((value, k) => (distance[k] <= besideData ? value : null));
  const inside = (values) => values.map((value, k) => (distance[k] === 0 ? value : null));
  const behind = panels.drawn[placeOf(i)].map((other, place) => ({
    x: grid, y: inside(curve(place + 1)), yaxis: "y2", mode: "lines", showlegend: false,
    line: { color: colour("behind"), width: 1, shape }, hoverinfo: "skip", name: shortText(nameOf(other), 24),
  }));
  const ratio = { x: grid, yaxis: "y2", mode: "lines", showlegend: false };
  const own = [
    { ...ratio, y: near(curve(0)), name: "ratio beside the data", hoverinfo: "skip",
      line: { color: colour("ratio"), width: 1.2, dash: "dot", shape } },
    { ...ratio, y: inside(curve(0)), name: "ratio",
      line: { color: colour("ratio"), width: 2.5, shape }, hovertemplate: "ratio %{y:.3g}<extra></extra>" },
  ];
  Plotly.react(target, [sample(reference, data.sides[0], "reference"),
    sample(after, data.sides[1], "target"), ...behind, ...own], chartLayout({
    ...sized(paperWidth), hovermode: "x", showlegend: true,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", font: { size: 12 } },
    margin: { l: 54, r: 10, t: 30, b: 42 },
    xaxis: axis(shortText(panels.features[j].name, 50), { ...axisOf(j), anchor: "y2", showspikes: false }),
    yaxis: axis("share", { domain: [0.54, 1], tickformat: ".0%", rangemode: "tozero" }),
    yaxis2: axis("ratio", { domain: [0, 0.46], rangemode: "tozero" }),
    shapes: [{ type: "line", xref: "paper", x0: 0, x1: 1, yref: "y2", y0: 1, y1: 1,
      line: { color: colour("accent"), width: 1.2, dash: "dash" } }],
    annotations: [{ xref: "paper", x: 1, yref: "y2", y: 1, text: "no change", showarrow: false,
      xanchor: "right", yanchor: "bottom", font: { size: 10, color: colour("accent") } }],
  }), stillConfig);
  return beyond;
};

const drawScatter = (target, i, first, second) => {
  const n = panels.features.length;
  const trace = (text, place, name) => {
    const shares = unpack(text), x = [], y = [];
    for (let k = 0; k < shares.length; k += n) {
      x.push(onAxis(shares[k + first], i, first));
      y.push(onAxis(shares[k + second], i, second));
    }
    return { x, y, mode: "markers", name: shortText(name, 30), hoverinfo: "skip",
      marker: { size: 6, opacity: 0.6, color: colour(place), symbol: place === "target" ? "diamond" : "circle" } };
  };
  Plotly.react(target, [trace(panels.points[placeOf(i)][0], "reference", data.sides[0]),
    trace(panels.points[placeOf(i)][1], "target", data.sides[1])], chartLayout({
    ...sized(paperWidth), showlegend: true, legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
    margin: { l: 54, r: 10, t: 30, b: 42 },
    xaxis: axis(shortText(panels.features[first].name, 50), axisOf(first)),
    yaxis: axis(shortText(panels.features[second].name, 40), axisOf(second)),
  }), stillConfig);
};

const fact = (term, value) => element("div", {}, element("dt", {}, term), element("dd", {}, value));

const verdict = (i) => {
  const value = nodes.divergence[i];
  if (value === null) {
    return "One of its samples is missing: the divergence cannot be estimated, and the ratio is borrowed from its neighbours.";
  }
  const like = value <= 0 ? "not above 0"
    : `${nodes.near_ceiling.includes(i) ? "at least" : "about"} the effect of a shift by ${number(nodes.shift[i], 2)} standard deviations`;
  if (!tested) return isChanged(i) ? `A clear change: ${like}.` : `No clear change: the estimate is ${like}.`;
  if (verdicts.by === "test" && isChanged(i)) {
    return value <= 0 ? "Changed significantly. The divergence is not above 0 and does not show this change; the test found it in its own observations."
      : `Changed significantly: ${like}.`;
  }
  return `${sentenceOf(verdicts.words[i])} The estimate is ${like}.`;
};

const numbersTable = (i) => {
  const cells = (values) => values.map((text) => element("td", { class: "number" }, text));
  const rows = nodes.feature_names.map((name, j) => {
    const [before, after] = [nodes.mean[i][0][j], nodes.mean[i][1][j]];
    const [narrow, wide] = [nodes.spread[i][0][j], nodes.spread[i][1][j]];
    const pair = (value, spread) => (value === null ? "–" : `${number(value, 4)} ± ${number(spread, 3)}`);
    return element("tr", {}, element("td", {}, name),
      ...cells([pair(before, narrow), pair(after, wide), signed(ownChange(i, j)),
        ...(nodes.smoothed ? [signed(nodes.change[i][j])] : [])]));
  });
  const key = (place, name) => element("th", { scope: "col", class: "number" },
    element("span", { class: `key ${place}` }), name);
  return element("table", {}, element("caption", { class: "hidden" }, "Mean and standard deviation of each feature"),
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "mean ± spread"),
      key("reference", data.sides[0]), key("target", data.sides[1]),
      ...(nodes.smoothed ? ["own change", "with neighbours"] : ["change"]).map(
        (title) => element("th", { scope: "col", class: "number" }, title)))),
    element("tbody", {}, ...rows));
};

const neighbourList = (i, onSelect) => {
  const near = nodes.neighbours[i];
  if (!near.length) return [element("p", { class: "quiet" }, "No neighbours in the graph.")];
  const most = 30;
  const chips = element("div", { class: "chips" }, ...near.slice(0, most).map((other) => element(
    "button", { type: "button", "data-node": other, onclick: () => onSelect(other) },
    nameOf(other), element("span", { class: "quiet" }, divergenceText(other)))));
  const rest = near.length > most
    ? [element("p", { class: "quiet" }, `and ${near.length - most} more`)] : [];
  return [element("h3", {}, near.length === 1 ? "One neighbour" : `${near.length} neighbours`), chips, ...rest];
};

const featureCaption = (i) => {
  const said = ["Above: the distribution of each sample. Below: the estimated ratio, above 1 (dashed) where “" +
    `${data.sides[1]}” has a larger share of its observations than “${data.sides[0]}”, below 1 where it has a smaller one. The curve is dotted just outside the data of this ${data.noun[0]}, and then ends.`];
  if (panels.features.length > 1) said.push(`Along each feature the others are held at the median of this node${panels.features.some((f) => f.levels.length) ? ", categories at the most frequent level" : ""}.`);
  const drawn = panels.drawn[placeOf(i)].length, near = nodes.neighbours[i].length;
  if (drawn) {
    said.push(`Thin grey lines: the ratios of ${drawn < near ? `${drawn} of its ${near} neighbours` : "its neighbours"} at the same points.`);
  } else if (near) said.push("The ratios of its neighbours are left out because the network is large.");
  if (panels.features.length < data.n_columns) {
    said.push(`Of ${data.n_columns} features, the ${panels.features.length} whose means changed most over all nodes are drawn.`);
  }
  return said.join(" ");
};

const scatterBlock = (i) => {
  if (panels.features.length < 2 || !hasCharts(i)) return [];
  if (!panels.points) {
    return [element("p", { class: "quiet" }, "The scatter plot is left out because the network is large.")];
  }
  const draw = () => drawScatter("scatter", i, chosen[0], chosen[1]);
  const chosen = [0, 1];
  const choice = (place) => {
    const list = element("select", { "aria-label": place ? "vertical feature" : "horizontal feature",
      onchange: (event) => { chosen[place] = Number(event.target.value); draw(); } },
    ...panels.features.map((feature, j) => element("option", { value: j }, feature.name)));
    list.value = place;
    return list;
  };
  const pickers = panels.features.length > 2
    ? [element("p", {}, choice(0), " against ", choice(1))] : [];
  const cap = Math.max(nodes.n_reference[i], nodes.n_target[i]) > panels.max_points
    ? [element("figcaption", { class: "quiet" }, `${panels.max_points} observations of each sample, taken evenly.`)] : [];
  return [element("h3", {}, "The two samples"), ...pickers,
    element("figure", { class: "scatter" }, element("div", { id: "scatter", class: "chart" }), ...cap)];
};

const withUnit = (text, j) => (data.units[j] ? `${text} ${data.units[j]}` : text);
const plainName = (j) => nodes.feature_names[j].replaceAll("_", " ");

// The change of the mean of one feature; with several the table below has them.
const meansOf = (i) => {
  if (data.n_columns > 1 || panels.features[0].levels.length || nodes.change[i][0] === null) return [];
  const own = ownChange(i, 0) === null ? "" : `; in its own observations alone ${withUnit(signed(ownChange(i, 0)), 0)}`;
  return [element("p", { id: "mean-change" }, `Change of the mean of ${plainName(0)}: ${withUnit(signed(nodes.change[i][0]), 0)}`
    + (nodes.smoothed && nodes.neighbours[i].length ? ` with the help of neighbours${own}.` : "."))];
};

// The features whose spread clearly changed.
const spreadsOf = (i) => nodes.spread_changed[i].map((j) => {
  const [before, after] = [nodes.spread[i][0][j], nodes.spread[i][1][j]];
  const whose = nodes.feature_names.length > 1 ? `The spread of ${plainName(j)}` : "Its spread";
  return element("p", { class: "spread-change" },
    `${whose} ${after > before ? "grew" : "fell"} from ${number(before)} to ${withUnit(number(after), j)}.`);
});

const restsOn = (i) => {
  const borrowed = data.borrowed;
  if (!borrowed) return [];
  const percent = (share) => `${Math.round(100 * share)}%`;
  const others = (hasCharts(i) ? borrowed.largest[placeOf(i)] : []).filter(([, share]) => share >= 0.01)
    .map(([other, share]) => `${nameOf(other)} (${percent(share)})`);
  const rest = others.length ? ` Neighbours that contributed most: ${others.join(", ")}.` : "";
  const whose = percent(borrowed.own[i]) === "100%" ? "all of them are its own."
    : `${percent(borrowed.own[i])} of them are its own, the rest is borrowed through the graph.`;
  return [element("p", { id: "rests-on" },
    `The ratio rests on about ${number(borrowed.total[i], 2)} observations of both samples; ${whose}${rest}`)];
};

const heldOut = (i) => {
  const held = data.held_out;
  if (!held || held.loss[0][i] === null) return [];
  const words = { helped: "Neighbours helped here.", hurt: "Neighbours hurt here.",
    unclear: "Whether neighbours helped here is unclear.", "not assessed": "" };
  const rows = held.fits.map((fit, k) => element("tr", {}, element("td", {}, fit),
    element("td", { class: "number" }, `${number(held.loss[k][i], 3)} ± ${number(held.half[k][i], 2)}`)));
  return [element("table", { id: "held-out" },
    element("thead", {}, element("tr", {}, element("th", { scope: "col" }, "fit"),
      element("th", { scope: "col", class: "number" }, "held-out loss"))),
    element("tbody", {}, ...rows)),
  element("p", { class: "quiet" }, `A lower loss is better. ${words[held.neighbours[i]]}`)];
};

const fillPanel = (i, onSelect) => {
  byId("panel-heading").textContent = fullName(i);
  const without = [element("p", { class: "quiet", id: "no-charts" },
    `No charts: this page has charts of the ${number(panels.nodes?.length)} most changed ${data.noun[1]} only.`)];
  const figures = !hasCharts(i) ? without : panels.features.map((feature, j) => element("figure", {},
    ...(panels.features.length > 1 ? [element("h3", {}, feature.name)] : []),
    element("div", { id: `feature-${j}`, class: "chart", role: "img",
      "aria-label": `Distribution and estimated ratio of ${feature.name}` }),
    element("figcaption", { class: "quiet" })));
  byId("panel-body").replaceChildren(
    ...figures, element("p", { class: "verdict" }, verdict(i)), ...meansOf(i), ...spreadsOf(i), ...restsOn(i),
    ...(hasCharts(i) ? [element("details", {}, element("summary", {}, "How to read the charts"),
      element("p", { class: "quiet" }, featureCaption(i)))] : []),
    element("dl", { class: "facts" },
      fact("divergence", divergenceText(i)),
      ...(nodes.near_ceiling.includes(i) ? [fact("effect size", number(nodes.effect[i], 3))] : []),
      ...(tested ? [fact(pValueTitle, pValueText(i))] : []),
      fact(`observations, ${data.sides[0]}`, number(nodes.n_reference[i])),
      fact(`observations, ${data.sides[1]}`, number(nodes.n_target[i])),
      fact("effective sample size", number(nodes.effective[i], 2))),
    ...(nodes.effective[i] === null ? [] : [element("p", { class: "quiet" },
      `After reweighting to match “${data.sides[1]}”, the ${number(nodes.n_reference[i])} observations of “${data.sides[0]}” carry as much information as ${number(nodes.effective[i], 2)}.`)]),
    numbersTable(i), ...scatterBlock(i), ...heldOut(i), ...neighbourList(i, onSelect));
  drawPanel(i);
};

const drawPanel = (i) => {
  if (!hasCharts(i)) return;
  panels.features.forEach((_, j) => {
    const target = byId(`feature-${j}`);
    const beyond = drawFeature(target, i, j);
    target.nextElementSibling.textContent = beyond
      ? `${beyond === 1 ? "One observation lies" : `${beyond} observations lie`} outside the range drawn.` : "";
  });
  if (byId("scatter")) {
    const [first, second] = [...document.querySelectorAll("#panel select")].map((list) => Number(list.value));
    drawScatter("scatter", i, first ?? 0, second ?? 1);
  }
};
