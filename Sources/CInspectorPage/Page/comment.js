// The comment of a request.
import { field, make, toast } from "./dom.js";
import { post } from "./api.js";

/** Fills `box` with the form; `changed(row)` is told what was kept. */
export function showComment(box, capture, changed) {
  const text = make("textarea", { name: "comment", rows: 4, maxlength: 4096, value: capture.comment ?? "" });
  const keep = async (event) => {
    event.preventDefault();
    try {
      await post(`/v1/captures/${capture.id}/comment`, { comment: text.value });
      toast("comment kept");
      changed({ id: capture.id, comment: text.value });
    } catch (error) {
      toast(error.message);
    }
  };
  box.replaceChildren(make(
    "form",
    { onsubmit: keep },
    field("Comment", text, "It is kept with the request, and ~comment finds it."),
    make("button.primary", { type: "submit" }, "Keep"),
  ));
}
