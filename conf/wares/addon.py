"""An addon for mitmproxy: names the tenant for the origin server, and hides a part of the site."""

from mitmproxy import ctx, http


class Tenants:
    def load(self, loader):
        loader.add_option("header", str, "X-Tenant", "The field with the name of the tenant")

    def request(self, flow: http.HTTPFlow):
        flow.request.headers[ctx.options.header] = flow.request.pretty_host.split(".")[0]
        if flow.request.path.startswith("/internal/"):
            flow.response = http.Response.make(404, b"not found\n", {"Content-Type": "text/plain"})


addons = [Tenants()]
