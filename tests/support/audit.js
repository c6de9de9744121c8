// Returns what a person who sees little, or uses no mouse, would trip over on this page, one line each.
(() => {
  const found = [];
  const name = (element) => `${element.tagName.toLowerCase()}.${element.className} "${(element.textContent || "").trim().slice(0, 30)}"`;
  const rgb = (text) => { const [r, g, b, a = 1] = text.match(/[\d.]+/g).map(Number); return { r, g, b, a }; };
  const over = (top, under) => ({ r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a), b: top.b * top.a + under.b * (1 - top.a), a: 1 });
  const light = ({ r, g, b }) => { const [x, y, z] = [r, g, b].map((v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; }); return 0.2126 * x + 0.7152 * y + 0.0722 * z; };
  const ground = (element) => {
    const layers = [];
    for (let one = element; one; one = one.parentElement) { const colour = rgb(getComputedStyle(one).backgroundColor); layers.push(colour); if (colour.a === 1) break; }
    return layers.reverse().reduce((under, top) => over(top, under), { r: 255, g: 255, b: 255, a: 1 });
  };
  const shown = (element) => element.checkVisibility({ visibilityProperty: true }) && !element.closest(".hidden, .skip, .figure, option, datalist");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !shown(element) || element.matches("script")) continue;
    const style = getComputedStyle(element), under = ground(element);
    const [bright, dim] = [light(over(rgb(style.color), under)), light(under)].sort((a, b) => b - a);
    const ratio = (bright + 0.05) / (dim + 0.05), size = parseFloat(style.fontSize);
    const large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700);
    if (ratio < (large ? 3 : 4.5)) found.push(`contrast ${ratio.toFixed(2)}: ${name(element)}`);
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea")) {
    if (!field.labels.length && !field.getAttribute("aria-label")) found.push(`no label: ${name(field)} ${field.name}`);
  }
  for (const one of document.querySelectorAll("a, button")) {
    if (!(one.textContent.trim() || one.getAttribute("aria-label"))) found.push(`no name: ${name(one)}`);
    if (one.tabIndex < 0) found.push(`no way by keyboard: ${name(one)}`);
  }
  for (const one of document.querySelectorAll("img:not([alt]), [role=img]:not([aria-label])")) found.push(`no text: ${name(one)}`);
  for (const one of document.querySelectorAll("section")) {
    const label = one.getAttribute("aria-labelledby");
    if (label && !document.getElementById(label)) found.push(`labelled by nothing: ${label}`);
  }
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id).filter((id) => !document.querySelector(`svg #${CSS.escape(id)}`));
  for (const id of new Set(ids)) if (ids.filter((one) => one === id).length > 1) found.push(`id twice: ${id}`);
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (!document.documentElement.lang) found.push("no language");
  if (document.documentElement.scrollWidth > innerWidth + 1) found.push(`wider than the screen: ${document.documentElement.scrollWidth} of ${innerWidth}`);
  return found;
})()
