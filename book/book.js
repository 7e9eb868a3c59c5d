// Mends what mdBook's pages lack for people who use a keyboard or a screen reader.
{
  // Only a button may say that it is expanded.
  document.getElementById("mdbook-sidebar-toggle")?.setAttribute("role", "button");

  // The links of a hidden sidebar are no stops.
  const sidebar = document.getElementById("mdbook-sidebar");
  const hide = () => (sidebar.inert = sidebar.getAttribute("aria-hidden") === "true");
  if (sidebar) {
    new MutationObserver(hide).observe(sidebar, { attributeFilter: ["aria-hidden"] });
    hide();
  }

  // A box that scrolls takes the focus, so that the arrow keys scroll it. Other boxes need no stop
  // of the Tab key.
  const letScrollersFocus = () => {
    for (const box of document.querySelectorAll("main pre, main pre code, main .table-wrapper")) {
      if (box.scrollWidth > box.clientWidth) {
        box.tabIndex = 0;
      } else {
        box.removeAttribute("tabindex");
      }
    }
  };
  addEventListener("load", letScrollersFocus);
  addEventListener("resize", letScrollersFocus);
  // A fold has no width until it is open.
  document.addEventListener("toggle", letScrollersFocus, true);
}
