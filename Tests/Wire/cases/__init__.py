"""The cases, by what they are about. Importing registers them."""

from . import (  # noqa: F401
    admin,
    chains,
    command,
    connections,
    content,
    failures,
    fields,
    forward,
    http2,
    http2_floods,
    http2_upstream,
    large,
    limits,
    mutations,
    reload,
    refused_requests,
    refused_responses,
    targets,
    tls,
    upgrade,
)
