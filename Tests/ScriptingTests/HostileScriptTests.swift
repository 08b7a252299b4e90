import Foundation
import Testing

@testable import Scripting

/// Scripts that try to keep a loop busy, to use up its memory, or to leave the sandbox. Each call must end, soon, with an error.
@Suite(.serialized) struct HostileScriptTests {
    private static let limits = ScriptLimits(memory: 16 << 20, callTime: .milliseconds(5))

    /// The time that this thread has had the processor.
    private static func threadTime() -> Duration {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }

    /// Statements that never end by themselves, or would take a long time.
    private static let endless = [
        ("a loop", "while true do end"),
        ("a loop with a counter", "for i = 1, 1e15 do local x = i * 2 end"),
        ("a jump", "::again:: goto again"),
        ("a tail call", "local function f() return f() end f()"),
        ("caught errors", "while true do pcall(function() while true do end end) end"),
        ("nested caught errors", "local function f() pcall(f) while true do pcall(f) end end f()"),
        ("a caught error at the end", "return pcall(function() while true do end end)"),
        (
            "caught errors below many frames",
            "local function f(n) if n > 0 then return 1 + f(n - 1) end while true do pcall(error) end end f(100000)"
        ),
        (
            "nested caught errors below many frames",
            "local function g() pcall(g) while true do end end local function f(n) if n > 0 then return 1 + f(n - 1) end g() end f(100000)"
        ),
        (
            "a closing variable",
            "local x <close> = setmetatable({}, { __close = function() while true do end end }) while true do end"
        ),
        (
            "a metamethod",
            "local t = setmetatable({}, { __index = function(t, k) return t[k + 1] end }) pcall(function() return t[1] end) while true do local _ = pcall(function() return t[1] end) end"
        ),
        (
            "a comparison",
            "local t = {} for i = 1, 1000 do t[i] = i end while true do table.sort(t, function(a, b) return true end) end"
        ),
        ("an iterator", "for _ in function() return 1 end do end"),
        (
            "next",
            "local t = {} for i = 1, 100000 do t[i] = i end for i = 1, 99999 do t[i] = nil end while true do next(t) end"
        ),
        ("a pattern", "return ('a'):rep(30):find(('a?'):rep(30) .. ('a'):rep(30) .. 'b')"),
        ("a lazy pattern", "return ('a'):rep(1000):match(('.-'):rep(10) .. 'b')"),
        ("a greedy pattern", "return ('a'):rep(100000):match('.*.*.*.*b')"),
        ("a pattern of anchors", "while true do (('a'):rep(100)):gsub('a*', '%0') end"),
        ("a balanced pattern", "return ('('):rep(1000000):find('%b()')"),
        ("a pattern in an iterator", "for _ in ('a'):rep(100000):gmatch('.-.-.-b') do end"),
        ("a frontier", "return ('a'):rep(1000000):find('%f[b]')"),
        ("a back reference", "return ('a'):rep(20000):find('(.*)%1b')"),
        ("a plain search", "local s = ('a'):rep(1000000) while true do s:find(('a'):rep(1000) .. 'b', 1, true) end"),
        (
            "comparing long strings",
            "local a, b = ('a'):rep(1000000), ('a'):rep(999999) .. 'a' while true do local _ = a == b end"
        ),
        (
            "long strings in order",
            "local a, b = ('a'):rep(1000000) .. 'a', ('a'):rep(1000000) .. 'b' while true do local _ = a < b end"
        ),
        ("a long number", "local s = ('0'):rep(1900000) .. '1' while true do local _ = s + 1 end"),
        ("tonumber", "local s = ('0'):rep(1900000) .. '1' while true do tonumber(s) end"),
        ("a number in hexadecimal", "local s = '0x' .. ('1'):rep(1900000) while true do tonumber(s) end"),
        ("joining strings", "local s = ('a'):rep(1000000) while true do local _ = s .. 'b' end"),
        ("capitals", "local s = ('a'):rep(1900000) while true do s:upper() end"),
        ("utf8", "local s = ('a'):rep(1900000) while true do utf8.len(s) end"),
        ("a reversed string", "local s = ('a'):rep(1900000) while true do s:reverse() end"),
        ("moving to itself", "local t = {1} while true do table.move(t, 1, 1e9, 2) end"),
        ("moving nothing", "table.move({}, 1, 1e15, 1)"),
        (
            "inserting before an invented length",
            "table.insert(setmetatable({}, { __len = function() return 1e15 // 1 | 0 end }), 1, 1)"
        ),
        (
            "removing with an invented length",
            "table.remove(setmetatable({}, { __len = function() return 1e15 // 1 | 0 end }), 1)"
        ),
        (
            "joining an invented length",
            "table.concat(setmetatable({}, { __len = function() return 1 << 60 end, __index = function() return '' end }))"
        ),
        ("sorting", "local t = {} for i = 1, 150000 do t[i] = (i * 7919) % 150001 end table.sort(t)"),
        (
            "a long chain of tables",
            "local t = {} for i = 1, 1900 do t = setmetatable({}, { __index = t }) end while true do local _ = t.x end"
        ),
        (
            "refilling a table",
            "local t = {} for i = 1, 65536 do t['k' .. i] = i end local i = 1 while true do t['k' .. i] = nil i = i + 1 t['k' .. (i + 65536)] = 1 end"
        ),
        (
            "many arguments",
            "local t = {} for i = 1, 4000 do t[i] = i end local function f(...) return ... end while true do f(table.unpack(t)) end"
        ),
        ("a format", "while true do string.format(('%s'):rep(100), table.unpack({}, 1, 100)) end"),
        ("host functions", "while true do host.echo(1) end"),
        ("a field of the host", "while true do local _ = req.path end"),
        ("tables as garbage", "while true do local _ = { {}, {}, {} } end"),
        ("closures as garbage", "while true do local _ = function() return req end end"),
        ("strings as garbage", "local i = 0 while true do i = i + 1 local _ = 'x' .. i end"),
        ("packing", "local f = ('b'):rep(900) local s = ('a'):rep(900) while true do string.unpack(f, s) end"),
    ]

    @Test(arguments: endless.map(\.0))
    func `a script that does not end is stopped, and the state serves the next call`(name: String) throws {
        let body = try #require(HostileScriptTests.endless.first { $0.0 == name }).1
        let rig = try ScriptRig(
            "local wild = true return { request = function(req, opt) \(body) end, response = function() return 'well' end }"
        )
        for _ in 0..<3 {
            let before = HostileScriptTests.threadTime()
            let outcome = rig.call()
            let spent = HostileScriptTests.threadTime() - before
            guard case .failed(let fault) = outcome else {
                Issue.record("the call ends as \(outcome)")
                return
            }
            #expect(fault.kind == .overTime, "\(fault)")
            #expect(fault.line == 1)
            #expect(spent < .milliseconds(50), "the call took \(spent)")
        }
        guard case .done(.string) = rig.call(1) else {
            Issue.record("the state serves no further call")
            return
        }
    }

    /// Statements that use up the memory.
    private static let greedy = [
        ("a growing string", "local s = 'x' while true do s = s .. s end"),
        ("a growing table", "local t = {} while true do t[#t + 1] = {} end"),
        ("a growing table of strings", "local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end"),
        ("a growing array", "local t = {} for i = 1, 1e9 do t[i] = i end"),
        ("a growing table of keys", "local t = {} for i = 1, 1e9 do t['k' .. i] = true end"),
        (
            "caught errors",
            "local t = {} while true do pcall(function() while true do t[#t + 1] = ('x'):rep(100000) .. #t end end) end"
        ),
        ("deep recursion", "local function f(a) return f({ a }) .. 'x' end f()"),
        ("closures", "local f = function() end while true do local g = f f = function() return g end end"),
        ("a table inside a table", "local t = {} while true do t = { t, {}, {}, {} } end"),
    ]

    @Test(arguments: greedy.map(\.0))
    func `a script that uses up its memory is stopped within its limits`(name: String) throws {
        let body = try #require(HostileScriptTests.greedy.first { $0.0 == name }).1
        let rig = try ScriptRig(body: body, limits: ScriptLimits(callTime: .seconds(10)))
        let fault = try #require(rig.fault())
        #expect(
            fault.kind == .overMemory || (fault.kind == .error && fault.reason.contains("stack overflow")), "\(fault)")
        // It is given back at once.
        #expect(rig.state.memory <= (rig.state.isDead ? 0 : 16 << 20))
        #expect(rig.state.isDead == (fault.kind == .overMemory))
        // And within the usual time, whichever limit comes first.
        let quick = try ScriptRig(body: body)
        let before = HostileScriptTests.threadTime()
        #expect(quick.fault() != nil)
        let spent = HostileScriptTests.threadTime() - before
        #expect(spent < .milliseconds(50), "the call took \(spent)")
    }

    @Test func `a state that has exceeded its memory ends all its calls`() throws {
        let rig = try ScriptRig(
            "return { request = function() host.later() return 1 end, response = function() local t = {} while true do t[#t + 1] = {} end end }",
            limits: ScriptLimits(callTime: .seconds(10)))
        guard case .waits(let call) = rig.call() else {
            Issue.record("the call does not wait")
            return
        }
        guard case .failed(let fault) = rig.call(1),
            case .failed(let other) = rig.state.resume(call, with: .success([]), host: rig.host)
        else {
            Issue.record("the calls go on")
            return
        }
        #expect(fault.kind == .overMemory)
        #expect(fault.line == 1)
        #expect(other.kind == .overMemory)
        #expect(rig.state.isDead)
        #expect(rig.fault()?.kind == .overMemory)
        rig.state.drop(call)
    }

    @Test(arguments: [
        "return ('x'):rep(1e9)", "return ('x'):rep(1e9, 'y')", "return ('x'):rep(math.maxinteger)",
        "return ('x'):rep(1, ('y'):rep(1e9))",
        "return table.concat(setmetatable({}, { __len = function() return 1000 end, __index = function() return ('x'):rep(10000) end }))",
        "return (('x'):rep(10000):gsub('x', ('y'):rep(1000)))",
        "return (('x'):rep(2000):gsub('x', function() return ('y'):rep(2000) end))",
    ])
    func `a string that would be too long is an error that can be caught`(body: String) throws {
        let limits = ScriptLimits(callTime: .seconds(10))
        #expect(try fault(body, limits: limits)?.reason == "the string would have more than 2097152 bytes")
        #expect(try run("pcall(function() \(body) end) return 'well'", limits: limits) == .text("well"))
    }

    @Test(arguments: [
        "io.open('/etc/passwd')", "os.execute('true')", "package.loadlib()", "debug.getregistry()", "require('os')",
        "load('return 1')",
        "loadfile('x')", "dofile('x')", "loadstring('x')", "collectgarbage()", "coroutine.create(print)", "print('x')",
        "_G.x = 1",
        "string.dump(function() end)", "setfenv(1, {})", "newproxy()", "rawset(_ENV, 'x', 1)", "warn('@on')",
        "xpcall(error, error)",
    ])
    func `functions outside of the sandbox do not exist`(body: String) throws {
        let fault = try #require(try fault(body))
        #expect(fault.kind == .error)
        #expect(fault.reason.contains("is not defined") || fault.reason.contains("a nil value"), "\(fault)")
    }

    @Test(arguments: [
        ("x = 1", "global variables are read-only: write 'local x'"),
        ("string = nil", "global variables are read-only: write 'local string'"),
        ("_ENV.x = 1", "global variables are read-only: write 'local x'"),
        ("return undefined", "the variable 'undefined' is not defined"),
        ("string.format = nil", "this table is read-only: 'format' cannot be assigned"),
        ("math.pi = 3", "this table is read-only: 'pi' cannot be assigned"),
        ("host.echo = nil", "this table is read-only: 'echo' cannot be assigned"),
        ("table.insert(string, 1)", "this table is read-only: 'number' cannot be assigned"),
        ("table.insert(_ENV, 1)", "global variables are read-only: write 'local number'"),
        ("getmetatable('').__index = nil", "attempt to index a boolean value"),
        ("setmetatable(_ENV, {})", "cannot change a protected metatable"),
        ("setmetatable(string, nil)", "cannot change a protected metatable"),
        ("setmetatable({}, { __gc = function() end })", "a metatable must not have '__gc'"),
        ("setmetatable({}, { __mode = 'k' })", "a metatable must not have '__mode'"),
        ("setmetatable({}, { __call = setmetatable({}, {}) })", "a metatable's '__call' must be a function"),
        ("return table.unpack({}, 1, 1e8)", "too many results to unpack"),
        ("return ('x'):rep(100000):byte(1, -1)", "too many results"),
        ("return utf8.codepoint(('x'):rep(100000), 1, -1)", "too many results"),
        ("string.pack(('b'):rep(2000))", "the format has more than 1000 bytes"),
        ("return string.format('%99999d', 1)", "invalid conversion"),
        ("return ('x'):find('[a')", "malformed pattern (missing ']')"),
        ("local function f() return (('x'):gsub('x', f)) end f()", "stack overflow"),
        ("return ('a'):rep(300):find(('a?'):rep(300))", "the pattern is too complex"),
        (
            "local function f(n) return pcall(f, n + 1) end local ok, e = f(1) while e == true or e == false do ok, e = pcall(error, 'deep') end error(e, 0)",
            "deep"
        ), ("error({})", "the error value is a table"), ("error()", "the error value is a nil"),
        ("error(nil)", "the error value is a nil"),
        ("error(setmetatable({}, { __tostring = function() while true do end end }))", "the error value is a table"),
        ("return rawget(req, 1)", "table expected"), ("next({}, 'x')", "invalid key to 'next'"),
        ("local t = {} t[nil] = 1", "index is nil"),
        ("return setmetatable({}, { __index = 5 }).x", "attempt to index a number value"),
    ])
    func `an attempt to leave the sandbox is an error`(body: String, reason: String) throws {
        let fault = try #require(try fault(body, limits: ScriptLimits(callTime: .seconds(10))))
        #expect(fault.kind == .error)
        #expect(fault.line == 2)
        #expect(fault.reason.contains(reason), "\(fault)")
    }

    @Test func `later changes of a metatable have no effect`() throws {
        let made = "local m = {} local t = setmetatable({}, m) "
        #expect(try run(made + "m.__index = function() return 1 end return t.x") == .missing)
        #expect(
            try run(made + "m.__mode = 'k' m.__gc = function() while true do end end return 'well'") == .text("well"))
    }

    @Test func `memory stays flat while a script makes garbage`() throws {
        let rig = try ScriptRig(
            body: """
                local t = {}
                for i = 1, 50 do t[i] = { name = 'n' .. i, path = req.path .. i } end
                return #table.concat({ t[1].name, t[50].path }, ',')
                """, limits: ScriptLimits(callTime: .seconds(10)))
        for _ in 0..<2_000 { _ = try rig.result() }
        let before = rig.state.memory
        for _ in 0..<20_000 { _ = try rig.result() }
        #expect(rig.state.memory <= before + 65_536)
        #expect(rig.state.memory < 1 << 20)
    }

    @Test func `an idle state needs less than 150 KiB`() throws {
        let rig = try ScriptRig(body: "return req.path")
        _ = try rig.result()
        #expect(rig.state.memory < 150 << 10)
    }
}
