// Sets the page's formulas with the MathJax that Bokeh carries along, so that no page asks another host for one.
// Bokeh's plugin hands over its modules by number; to require them is all that is needed of Bokeh here.
"use strict";
(() => {
  let sources, numbers;
  const plugin = { register_plugin: (given, entry, aliases) => { sources = given; numbers = aliases; } };
  const bokeh = new Proxy(plugin, { get: (own, name) => own[name] ?? plugin });  // by version, too
  const made = new Map();

  function required(name) {
    const number = numbers[name] ?? name;
    if (!made.has(number)) {
      const module = { exports: {} };
      made.set(number, module);
      const mark = () => Object.defineProperty(module.exports, "__esModule", { value: true });
      const give = (key, value) => { module.exports[key] = value; };
      sources[number].call(module.exports, required, module, module.exports, mark, give);
    }
    return made.get(number).exports;
  }

  function set(element) {
    const tex = /\\([([])([^]*)\\[)\]]/.exec(element.textContent);
    if (!tex) return;
    const svg = required("models/text/mathjax/index").tex2svg(tex[2], { display: tex[1] === "[" });
    svg.setAttribute("role", "img");
    svg.setAttribute("aria-label", tex[2]);
    const number = element.querySelector(".eqno"), formula = document.createElement("span");
    formula.className = "formula";
    formula.append(svg);
    element.replaceChildren(...(number ? [number, formula] : [formula]));
    element.classList.add("set");
    const next = element.nextSibling, mark = /^[.,;:!?)’]+/.exec(next?.nodeType === 3 ? next.data : "");
    if (tex[1] === "[" || !mark) return;
    next.data = next.data.slice(mark[0].length);
    const line = document.createElement("span");
    line.className = "unbroken";  // a mark stays beside its formula
    element.before(line);
    line.append(element, mark[0]);
  }

  window.Bokeh = bokeh;
  const script = document.createElement("script");
  script.src = new URL("bokeh-mathjax.min.js", document.currentScript.src).href;
  script.onload = () => { delete window.Bokeh; document.querySelectorAll(".math").forEach(set); };
  document.head.append(script);
})();
