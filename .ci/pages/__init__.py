"""The articles as static pages: Markdown to HTML, the frame around them, and an index for the search."""
