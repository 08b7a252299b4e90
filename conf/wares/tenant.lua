-- Sends each tenant's requests below a path of its own.
return {
  options = { header = "X-Tenant" },
  request = function(req, opt, x)
    local tenant = req.host:match("^(%w+)%.")
    if not tenant then return { status = 404, text = "no such tenant\n" } end
    req.fields[opt.header] = tenant
    req.path = "/" .. tenant .. req.path
  end,
  response = function(res, opt, x)
    res.fields[opt.header] = nil
  end,
}
