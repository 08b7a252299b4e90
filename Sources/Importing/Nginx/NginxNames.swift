// One file: the table of the directives of nginx.
/// What is known about the directives of nginx by their names.
enum NginxNames {
    /// Directives that are translated where they stand, or named there with a reason of their own.
    static let handled: Set<String> = [
        "http", "server", "location", "listen", "server_name", "upstream", "proxy_pass", "grpc_pass",
        "proxy_set_header",
        "grpc_set_header", "add_header", "proxy_hide_header", "more_set_headers", "more_clear_headers",
        "more_set_input_headers", "more_clear_input_headers", "expires", "return", "rewrite", "if", "set", "break",
        "root",
        "alias", "index", "try_files", "autoindex", "error_page", "gzip", "gzip_types", "gzip_min_length",
        "gzip_comp_level", "gzip_static", "brotli", "brotli_types", "brotli_comp_level", "brotli_min_length",
        "client_max_body_size", "client_header_timeout", "keepalive_timeout", "proxy_connect_timeout",
        "proxy_read_timeout", "grpc_connect_timeout", "grpc_read_timeout", "proxy_cache", "proxy_cache_path",
        "proxy_cache_valid", "proxy_cache_use_stale", "proxy_cache_key", "proxy_cache_bypass", "proxy_no_cache",
        "proxy_cache_methods", "limit_req", "limit_req_zone", "limit_req_status", "limit_conn", "limit_conn_zone",
        "limit_conn_status", "auth_basic", "auth_basic_user_file", "allow", "deny", "satisfy", "auth_request",
        "auth_request_set", "ssl_certificate", "ssl_certificate_key", "ssl_client_certificate", "ssl_verify_client",
        "ssl_protocols", "ssl", "proxy_ssl_verify", "proxy_ssl_name", "proxy_ssl_trusted_certificate",
        "proxy_ssl_certificate", "proxy_ssl_certificate_key", "set_real_ip_from", "real_ip_header", "map",
        "split_clients",
        "geo", "stub_status", "mirror", "limit_except", "internal", "proxy_redirect", "proxy_method",
        "proxy_next_upstream", "proxy_next_upstream_tries", "proxy_intercept_errors", "access_log", "default_type",
        "fastcgi_pass", "uwsgi_pass", "scgi_pass", "memcached_pass", "stream", "mail", "empty_gif", "charset",
        NginxIncludes.missing, "proxy_cookie_path", "proxy_cookie_domain",
        "proxy_pass_request_headers", "proxy_pass_request_body", "limit_req_dry_run", "limit_conn_dry_run",
        "satisfy_any",
    ]

    /// Directives that restrict access and are translated.
    static let handledAccess: Set<String> = [
        "auth_basic", "auth_basic_user_file", "allow", "deny", "satisfy", "auth_request", "auth_request_set",
        "limit_except", "ssl_verify_client", "internal",
    ]

    /// Directives that cannot be translated, with the reason.
    static let untranslated: [String: String] = [
        "sub_filter": "the ware rewriteBody replaces texts", "sub_filter_once": "the ware rewriteBody replaces texts",
        "sub_filter_types": "the ware rewriteBody replaces texts", "add_trailer": "trailer fields are not added here",
        "limit_rate": "the ware throttle limits bandwidth", "limit_rate_after": "the ware throttle limits bandwidth",
        "log_format": "accessLog writes combined lines; its template makes others",
        "proxy_ssl_crl": "revocation lists are not read", "ssl_crl": "revocation lists are not read",
        "ssl_verify_depth": "the depth of chains is OpenSSL's",
        "ssl_stapling_file": "certificates[].ocsp names such a file", "add_before_body": "content is not joined here",
        "add_after_body": "content is not joined here", "ssi": "server-side includes are not processed",
        "image_filter": "images are not changed", "proxy_bind": "connections use the system's address",
        "proxy_store": "httpCache stores responses", "proxy_cache_min_uses": "each response may be stored",
        "proxy_cache_max_range_offset": "parts are stored by their ranges",
        "proxy_ignore_headers": "the fields of responses decide about caches",
        "slice": "parts are stored by their ranges",
        "proxy_set_body": "the content of requests is passed on", "js_import": "scripts of nginx do not run here",
        "js_set": "scripts of nginx do not run here", "js_content": "scripts of nginx do not run here",
        "perl_set": "scripts of nginx do not run here", "load_module": "modules of nginx cannot be loaded",
        "types": "media types are built in; types of the ware files adds others",
        "proxy_socket_keepalive": "connections are checked by TCP keep-alive",
        "resolver_timeout": "names are resolved within the time to connect", "http3": "HTTP/3 is not spoken",
        "quic_retry": "HTTP/3 is not spoken", "dav_methods": "files are only read",
        "mp4": "media files are sent as they are",
        "flv": "media files are sent as they are", "random_index": "index names the files of a folder",
        "proxy_headers_hash_max_size": "tables have no fixed size", "userid": "no cookies are set for clients",
        "server_name_in_redirect": "redirects name the host of the request",
        "reset_timedout_connection": "connections are closed",
    ]

    /// Directives that change nothing here, with the reason in few words.
    static let unneeded: [String: String] = {
        var reasons: [String: String] = [:]
        for (reason, names) in [
            ("one loop for each core is the default", ["worker_processes", "worker_cpu_affinity", "worker_priority"]),
            (
                "the system's limits and the listener's apply",
                ["worker_connections", "worker_rlimit_nofile", "worker_rlimit_core", "worker_aio_requests"]
            ),
            (
                "belongs to nginx's process",
                [
                    "user", "pid", "daemon", "master_process", "lock_file", "events", "use", "multi_accept",
                    "accept_mutex",
                    "accept_mutex_delay", "env", "working_directory", "worker_shutdown_timeout", "pcre_jit",
                    "thread_pool",
                    "debug_points", "timer_resolution", "ssl_engine", "google_perftools_profiles",
                ]
            ),
            (
                "the gateway's log is set by log",
                ["error_log", "log_not_found", "rewrite_log", "log_subrequest", "open_log_file_cache"]
            ),
            (
                "files and content are sent efficiently by themselves",
                [
                    "sendfile", "sendfile_max_chunk", "tcp_nopush", "tcp_nodelay", "aio", "aio_write", "directio",
                    "output_buffers",
                    "postpone_output", "open_file_cache", "open_file_cache_valid", "open_file_cache_min_uses",
                    "open_file_cache_errors", "read_ahead", "etag", "if_modified_since", "max_ranges",
                    "chunked_transfer_encoding",
                ]
            ),
            (
                "content streams; limits are visible elsewhere",
                [
                    "proxy_buffering", "proxy_buffer_size", "proxy_buffers", "proxy_busy_buffers_size",
                    "proxy_request_buffering",
                    "proxy_max_temp_file_size", "proxy_temp_file_write_size", "proxy_temp_path",
                    "client_body_buffer_size",
                    "client_body_temp_path", "client_body_in_file_only", "client_body_in_single_buffer",
                    "client_header_buffer_size",
                    "large_client_header_buffers", "grpc_buffer_size", "proxy_limit_rate",
                    "subrequest_output_buffer_size",
                    "fastcgi_buffers", "fastcgi_buffer_size", "fastcgi_busy_buffers_size", "fastcgi_temp_path",
                    "uwsgi_temp_path",
                    "scgi_temp_path", "gzip_buffers", "proxy_force_ranges",
                ]
            ),
            (
                "the version is chosen for each connection",
                [
                    "proxy_http_version", "http2", "http2_max_concurrent_streams", "http2_push", "http2_push_preload",
                    "http2_body_preread_size",
                    "http2_chunk_size", "http2_recv_buffer_size", "http2_idle_timeout", "http2_max_field_size",
                    "http2_max_header_size",
                    "http2_max_requests", "http2_recv_timeout", "gzip_http_version", "keepalive_disable",
                    "msie_padding", "msie_refresh",
                ]
            ),
            (
                "tables have no fixed size",
                [
                    "types_hash_max_size", "types_hash_bucket_size", "server_names_hash_bucket_size",
                    "server_names_hash_max_size",
                    "variables_hash_max_size", "variables_hash_bucket_size", "map_hash_bucket_size",
                    "map_hash_max_size",
                    "proxy_headers_hash_bucket_size", "connection_pool_size", "request_pool_size",
                    "limit_req_log_level",
                    "limit_conn_log_level", "fastcgi_read_timeout", "fastcgi_connect_timeout", "fastcgi_send_timeout",
                ]
            ),
            (
                "versions, ciphers and tickets of TLS are safe by default",
                [
                    "ssl_ciphers", "ssl_prefer_server_ciphers", "ssl_dhparam", "ssl_ecdh_curve", "ssl_session_cache",
                    "ssl_session_timeout", "ssl_session_tickets", "ssl_session_ticket_key", "ssl_buffer_size",
                    "ssl_conf_command",
                    "ssl_early_data", "proxy_ssl_ciphers", "proxy_ssl_protocols", "proxy_ssl_session_reuse",
                    "proxy_ssl_server_name",
                    "proxy_ssl_verify_depth", "ssl_trusted_certificate", "ssl_stapling", "ssl_stapling_verify",
                    "ssl_reject_handshake", "proxy_ssl_conf_command",
                ]
            ),
            ("no Server field is sent", ["server_tokens", "server_header"]),
            (
                "names are resolved by the system's resolver, again after their TTL",
                ["resolver", "resolver_timeout", "ipv6"]
            ),
            (
                "Vary is always set",
                [
                    "gzip_vary", "gzip_disable", "gzip_proxied", "gzip_window", "brotli_buffers", "brotli_window",
                    "brotli_static",
                ]
            ),
            (
                "progress counts, see limits.idleTimeout",
                [
                    "send_timeout", "client_body_timeout", "proxy_send_timeout", "grpc_send_timeout",
                    "lingering_close", "lingering_time", "lingering_timeout", "send_lowat", "keepalive_time",
                ]
            ),
            ("connections are reused by themselves", ["keepalive_requests", "proxy_socket_keepalive"]),
            (
                "equal requests share one miss, and stale responses are validated",
                [
                    "proxy_cache_lock", "proxy_cache_lock_timeout", "proxy_cache_lock_age", "proxy_cache_revalidate",
                    "proxy_cache_background_update", "proxy_cache_convert_head",
                ]
            ),
            ("redirects are relative", ["absolute_redirect", "port_in_redirect"]),
            ("a client's leaving ends its exchange", ["proxy_ignore_client_abort", "proxy_next_upstream_timeout"]),
            ("paths are read strictly where access depends on them", ["merge_slashes"]),
            (
                "such fields are passed on, and removed where they are set",
                ["underscores_in_headers", "ignore_invalid_headers", "proxy_pass_header"]
            ),
            ("the right-most address that is not trusted counts", ["real_ip_recursive"]),
            ("charset is passed on", ["charset_types", "source_charset", "override_charset"]),
            (
                "belongs to FastCGI, uwsgi or SCGI, which are refused",
                [
                    "fastcgi_param", "fastcgi_index", "fastcgi_split_path_info", "uwsgi_param", "scgi_param",
                    "fastcgi_hide_header", "fastcgi_intercept_errors", "uwsgi_read_timeout", "uwsgi_send_timeout",
                    "fastcgi_buffering", "fastcgi_keep_conn",
                ]
            ),
            ("a copy never has its content twice", ["mirror_request_body"]),
            (
                "the list of a folder is always exact",
                ["autoindex_exact_size", "autoindex_localtime", "autoindex_format"]
            ),
            ("links that lead out of the folder answer 404", ["disable_symlinks"]),
            ("recursive error pages do not occur", ["recursive_error_pages"]),
        ] {
            for name in names { reasons[name] = reason }
        }
        return reasons
    }()

    /// Parts of the names of directives of modules that may restrict access.
    private static let accessParts = [
        "auth", "jwt", "oidc", "access", "rewrite_by_", "content_by_", "set_by_", "secure_link", "modsecurity",
        "secrule",
        "naxsi", "waf", "deny", "allow", "block", "ban", "guard", "captcha", "testcookie", "js_content", "perl",
        "session", "valid_referers_",
        "protect", "secrules", "acl", "restrict", "permission",
    ]

    /// Whether a directive may restrict access and is not translated.
    static func mayRestrict(_ name: String) -> Bool {
        if handledAccess.contains(name) || handled.contains(name) || unneeded[name] != nil
            || untranslated[name] != nil && !["js_content", "perl_set"].contains(name)
        {
            return name == NginxIncludes.missing
        }
        let lower = name.lowercased()
        if lower.hasPrefix("lua_") || lower.hasPrefix("init_") || lower.hasPrefix("log_by_")
            || lower.contains("filter_by_")
        {
            return false
        }
        return accessParts.contains { lower.contains($0) }
    }
}
