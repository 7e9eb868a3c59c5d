// The page is whole without this. It adds buttons that sort, and opens the group of a case that a
// link or a point leads to.
const figure = (cell) => Number.parseFloat(cell.textContent);
const compare = (a, b) =>
  Number.isNaN(figure(a)) || Number.isNaN(figure(b))
    ? a.textContent.localeCompare(b.textContent, "en", { numeric: true })
    : figure(a) - figure(b);

for (const table of document.querySelectorAll("table")) {
  const headings = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  headings.forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    heading.append(button);
    button.addEventListener("click", () => {
      const direction = heading.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", direction === 1 ? "ascending" : "descending");
      const known = (row) => (row.cells[at].textContent === "-" ? 1 : 0);
      const rows = [...body.rows];
      rows.sort((a, b) => known(a) - known(b) || direction * compare(a.cells[at], b.cells[at]));
      body.append(...rows);
    });
  });
}

const reveal = (hash) => {
  const row = document.getElementById(hash.slice(1));
  row?.closest("details")?.setAttribute("open", "");
  row?.scrollIntoView();
};
addEventListener("hashchange", () => reveal(location.hash));
reveal(location.hash);
// A second click on a link changes no address, and the group may be closed again.
document.addEventListener("click", ({ target }) => {
  const link = target.closest("a[href^='#']");
  if (link) reveal(link.getAttribute("href"));
});
