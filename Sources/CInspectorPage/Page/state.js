// Where one is: the view and its parameters are in the URL's fragment, so a link to a request works.

export function place() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [view, id] = path.split("/");
  return { view: view || "requests", id: id || null, parameters: new URLSearchParams(query ?? "") };
}

export function link(view, id, parameters) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters ?? {})) if (value) query.set(key, value);
  const text = query.toString();
  return "#/" + view + (id ? "/" + encodeURIComponent(id) : "") + (text ? "?" + text : "");
}

export function go(view, id, parameters, replaces = false) {
  const hash = link(view, id, parameters);
  if (hash === location.hash) return;
  if (replaces) {
    history.replaceState(null, "", hash);
    dispatchEvent(new HashChangeEvent("hashchange"));
  } else {
    location.hash = hash;
  }
}

/** The choices of the user, kept in the browser. */
export const choices = {
  read(name, otherwise) {
    try {
      const text = localStorage.getItem("httpware." + name);
      return text === null ? otherwise : JSON.parse(text);
    } catch {
      return otherwise;
    }
  },
  write(name, value) {
    try {
      localStorage.setItem("httpware." + name, JSON.stringify(value));
    } catch { /* private windows */ }
  },
};
