import Testing

@testable import Scripting

@Suite struct ScriptStateTests {
    @Test(arguments: [
        ("return nil", ScriptValue.missing), ("return true", .boolean(true)), ("return 7", .integer(7)),
        ("return 1.5", .number(1.5)), ("return 'a\\0b'", .string([97, 0, 98])),
        ("return {1, 'b'}", .list([.integer(1), .text("b")])),
        ("return {a = {}}", .table([.init(key: .text("a"), value: .table([]))])), ("return host.null", .null),
        ("return print", .missing), ("return function() end", .other), ("", .missing),
        (
            "return {[1] = 1, [3] = 3}",
            .table([.init(key: .integer(1), value: .integer(1)), .init(key: .integer(3), value: .integer(3))])
        ),
    ])
    func `a result comes back as a value`(body: String, expected: ScriptValue) throws {
        if body == "return print" {
            #expect(try fault(body)?.reason == "the variable 'print' is not defined")
        } else {
            #expect(try run(body) == expected)
        }
    }

    @Test(arguments: [
        ScriptValue.list([]), .list([.integer(1), .list([]), .null]),
        .table([.init(key: .text("a"), value: .number(0.5))]),
        .boolean(false), .string([0, 255]), .integer(.min),
    ])
    func `an option goes to the script and back unchanged`(value: ScriptValue) throws {
        let rig = try ScriptRig(body: "return opt.value")
        try rig.state.set(options: .table([.init(key: .text("value"), value: value)]))
        #expect(try rig.result() == value)
    }

    @Test func `options cannot be changed`() throws {
        for body in ["opt.a = 1", "opt.b.c = 1", "table.insert(opt.list, 1)", "opt.list[1] = 2"] {
            let rig = try ScriptRig(body: body)
            try rig.state.set(
                options: .table([
                    .init(key: .text("b"), value: .table([])), .init(key: .text("list"), value: .list([.integer(1)])),
                ]))
            #expect(rig.fault()?.reason.contains("read-only") == true, "\(body)")
        }
    }

    @Test func `options are traversed like tables`() throws {
        let rig = try ScriptRig(
            body:
                "local n = #opt.list for _, v in ipairs(opt.list) do n = n + v end for k in pairs(opt.list) do n = n + k end return n"
        )
        try rig.state.set(options: .table([.init(key: .text("list"), value: .list([.integer(10), .integer(20)]))]))
        #expect(try rig.result() == .integer(2 + 30 + 3))
    }

    @Test func `properties, keys and methods of an object reach the host`() throws {
        let rig = try ScriptRig(
            body: """
                req.path = '/x' .. req.path
                req.fields['A'] = 'one'
                req.fields.B = req.fields.A .. 2
                req.fields.A = nil
                req:log('hello')
                return req.fields.C
                """)
        #expect(try rig.result() == .missing)
        #expect(rig.host.path == Array("/x/".utf8))
        #expect(rig.host.fields == ["B": Array("one2".utf8)])
        #expect(rig.host.logged == [.text("hello")])
    }

    @Test func `an iterator gives names and values`() throws {
        let rig = try ScriptRig(
            body:
                "local t = '' for name, value in req.fields:each() do t = t .. name .. '=' .. value .. ';' end return t"
        )
        rig.host.fields = ["a": [49], "b": [50]]
        #expect(try rig.result() == .text("a=1;b=2;"))
    }

    @Test(arguments: [
        ("req.pathh = 1", "a request has no member 'pathh'"), ("return req.x", "a request has no member 'x'"),
        ("req.log('x')", "a method needs its object: write ':' between them"),
        ("req.log = 1", "a method cannot be assigned"),
        ("host.refuse()", "refused"), ("req.path = {}", "a path is a string"),
    ])
    func `a misuse of the host is an error with its line`(body: String, reason: String) throws {
        let fault = try #require(try fault(body))
        #expect(fault == ScriptFault(.error, name: "test.lua", line: 2, reason: reason))
        #expect(fault.description == "test.lua:2: \(reason)")
    }

    @Test func `an object that was kept answers only in its own call`() throws {
        let rig = try ScriptRig(
            """
            local kept
            return {
              request = function(req) kept = req host.later() return req.path end,
              response = function() return kept.path end,
            }
            """)
        guard case .waits(let call) = rig.call() else {
            Issue.record("the call does not wait")
            return
        }
        guard case .failed(let fault) = rig.call(1) else {
            Issue.record("the other call reads the request")
            return
        }
        #expect(fault.reason == "this object belongs to another call of the script")
        guard case .done(.string) = rig.state.resume(call, with: .success([]), host: rig.host) else {
            Issue.record("the call does not end")
            return
        }
    }

    @Test func `calls wait side by side and get their own results`() throws {
        let rig = try ScriptRig(body: "local a = host.later() local b = pcall(host.later) return a .. tostring(b)")
        var calls: [ScriptState.Call] = []
        for _ in 0..<20 {
            if case .waits(let call) = rig.call() { calls.append(call) }
        }
        #expect(calls.count == 20)
        for (number, call) in calls.enumerated().reversed() {
            guard
                case .waits(let again) = rig.state.resume(
                    call, with: .success([.integer(Int64(number))]), host: rig.host)
            else {
                Issue.record("the call does not wait again")
                return
            }
            guard case .done(let value) = rig.state.resume(again, with: .failure(.init("late")), host: rig.host) else {
                Issue.record("the call does not end")
                return
            }
            #expect(value == .text("\(number)false"))
        }
    }

    @Test func `a refusal after a wait is an error of the line that waited`() throws {
        let rig = try ScriptRig(body: "\nhost.later()")
        guard case .waits(let call) = rig.call(),
            case .failed(let fault) = rig.state.resume(call, with: .failure(.init("late")), host: rig.host)
        else {
            Issue.record("the call does not fail")
            return
        }
        #expect(fault.description == "test.lua:3: late")
    }

    @Test func `a dropped call leaves the state in order`() throws {
        let rig = try ScriptRig(body: "if req.path == '/' then host.later() end return 1")
        guard case .waits(let call) = rig.call() else {
            Issue.record("the call does not wait")
            return
        }
        rig.state.drop(call)
        rig.host.path = []
        #expect(try rig.result() == .integer(1))
    }

    @Test func `the main part keeps values of the state, and cannot wait`() throws {
        let rig = try ScriptRig("local n = 0 return { request = function() n = n + 1 return n end }")
        #expect(try rig.result() == .integer(1))
        #expect(try rig.result() == .integer(2))
        #expect(throws: ScriptFault(.error, name: "test.lua", line: 1, reason: "this function cannot wait here")) {
            try ScriptRig("host.later() return {}")
        }
    }

    @Test func `the returned table says which functions there are`() throws {
        let rig = try ScriptRig("return { about = 'x', request = function() end, content = { request = '1KiB' } }")
        #expect(rig.state.has(function: 0))
        #expect(!rig.state.has(function: 1))
        #expect(rig.returned["about"] == .text("x"))
        #expect(rig.returned["request"] == .other)
        #expect(rig.returned["content"]["request"] == .text("1KiB"))
    }

    @Test(arguments: [
        ("return {", 1, "expected"), ("\nlocal a = = 1", 2, "unexpected symbol"), ("return 1", 0, "returns no table"),
        ("error('no')", 1, "no"), ("error({})", 1, "the error value is a table"), ("x = 1", 1, "write 'local x'"),
        ("return { a = y }", 1, "the variable 'y' is not defined"), ("while true do end", 1, "longer than its time"),
        ("local t = {} t.t = t return t", 0, "nested too deeply"), ("\u{1b}Lua", 0, "attempt to load a binary chunk"),
    ])
    func `an error in a script's main part has its line`(source: String, line: Int, reason: String) throws {
        let fault = try #require(throws: ScriptFault.self) { try ScriptRig(source) }
        #expect(fault.reason.contains(reason), "\(fault)")
        #expect(fault.line == (line > 0 ? line : nil), "\(fault)")
    }

    @Test func `a script's name that is longer than Lua shows still gives the line`() throws {
        let name = String(repeating: "folder/", count: 12) + "tenant.lua"
        var returned = ScriptValue.missing
        let fault = try #require(throws: ScriptFault.self) {
            try ScriptState(
                source: Array("\n error('no')".utf8), name: name, functions: [], library: TestHost.library,
                host: TestHost(),
                returned: &returned)
        }
        #expect(fault.description == "\(name):2: no")
    }

    @Test(arguments: [
        ("return ('hello world'):find('o w')", ScriptValue.integer(5)), ("return ('hello'):match('l+')", .text("ll")),
        ("return ('a.b'):find('.', 1, true)", .integer(2)), ("return ('k=v'):match('(%w)=(%w)')", .text("k")),
        ("return (('abc'):gsub('%w', '%0%0'))", .text("aabbcc")), ("return (('abc'):gsub('', '-'))", .text("-a-b-c-")),
        ("return (('hello world'):gsub('o', { o = '0' }))", .text("hell0 w0rld")),
        ("return (('abc'):gsub('b', function(c) return c:upper() end))", .text("aBc")),
        ("return (('abc'):gsub('b', function() end))", .text("abc")),
        ("return (('a b c'):gsub('%s', '%%'))", .text("a%b%c")),
        ("return (('aaa'):gsub('a', 'b', 2))", .text("bba")), ("return (('aaa'):gsub('^a', 'b'))", .text("baa")),
        ("return (('abc'):gsub('()', '%1'))", .text("1a2b3c4")), ("return (('abc d'):gsub('%w*', 'x'))", .text("x x")),
        (
            "local t = {} for w in ('one two'):gmatch('%a+') do t[#t + 1] = w end return table.concat(t, ',')",
            .text("one,two")
        ),
        ("local n = 0 for _ in ('abc'):gmatch('') do n = n + 1 end return n", .integer(4)),
        (
            "local t = {} for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do t[#t + 1] = k .. v end return table.concat(t)",
            .text("a1b2")
        ),
        ("return ('abc'):rep(3, '-')", .text("abc-abc-abc")), ("return ('').rep('', 1e18 // 1 | 0)", .text("")),
        ("return ('abc'):byte(-1)", .integer(99)), ("return #{('abc'):byte(1, -1)}", .integer(3)),
        ("return ('abc'):sub(2)", .text("bc")), ("return ('%5.2f|%s'):format(1.234, 'x')", .text(" 1.23|x")),
        ("return ('x'):find('x', 5)", .missing), ("return ('äb'):upper()", .text("äB")),
        ("return utf8.len('äb')", .integer(2)),
        ("return utf8.codepoint('ä')", .integer(228)), ("return '10' + 5", .integer(15)),
        ("return #string.pack('i4', 7)", .integer(4)),
        ("return math.max(1, 3, 2)", .integer(3)), ("return tostring(nil) .. type(req)", .text("niluserdata")),
    ])
    func `the libraries for text do what Lua's manual says`(body: String, expected: ScriptValue) throws {
        #expect(try run(body) == expected)
    }

    @Test(arguments: [
        ("local t = {3, 1, 2} table.sort(t) return table.concat(t, ' ')", "1 2 3"),
        ("local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t, ' ')", "3 2 1"),
        ("local t = {1, 2} table.insert(t, 3) table.insert(t, 1, 0) return table.concat(t, ' ')", "0 1 2 3"),
        ("local t = {1, 2, 3} local r = table.remove(t, 1) .. table.remove(t) return r .. table.concat(t)", "132"),
        ("return table.concat(table.move({1, 2, 3}, 1, 3, 2), ' ')", "1 1 2 3"),
        ("return table.concat(table.move({1, 2, 3}, 2, 3, 1), ' ')", "2 3 3"),
        ("return table.concat({table.unpack({1, 2, 3}, 2)}, ' ')", "2 3"),
        ("return table.pack(1, nil, 3).n .. ''", "3"),
        (
            "local t = {} for i = 1, 100 do t[i] = (i * 37) % 101 end table.sort(t) for i = 2, 100 do assert(t[i - 1] < t[i]) end return 'ok'",
            "ok"
        ),
        ("local t = setmetatable({}, { __index = function(_, k) return k .. '!' end }) return t.a", "a!"),
        (
            "local C = {} C.__index = C function C.new() return setmetatable({}, C) end function C:x() return 'x' end return C.new():x()",
            "x"
        ),
        ("local m = {} return tostring(getmetatable(setmetatable({}, m)) == m)", "true"),
        ("local m = { __metatable = 'no' } return getmetatable(setmetatable({}, m))", "no"),
        ("local t = setmetatable({}, {}) setmetatable(t, nil) return tostring(getmetatable(t))", "nil"),
        (
            "local t = setmetatable({}, { __pairs = function() return next, { a = 1 } end }) for k in pairs(t) do return k end",
            "a"
        ),
        ("return select(2, pcall(error, 'x'))", "x"), ("local ok, e = pcall(error, { code = 'c' }) return e.code", "c"),
    ])
    func `the libraries for tables do what Lua's manual says`(body: String, expected: String) throws {
        #expect(try run(body) == .text(expected))
    }
}
