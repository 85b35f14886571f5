import Foundation
import PACEngine
import Testing

@Suite("Proxy scripts", .timeLimit(.minutes(5)))
struct ProxyScriptEngineTests {
    /// The answer of a script that returns the value of an expression.
    private static func value(
        _ expression: String, url: String = "http://www.example.com/a", host: String = "www.example.com",
        names: [String: String] = [:]
    ) throws -> ProxyScriptAnswer {
        let engine = try ProxyScriptEngine("function FindProxyForURL(url, host) { return String(\(expression)); }")
        return try engine.evaluate(url: url, host: host, names: names, ownAddress: "192.0.2.9")
    }

    @Test func scriptSeesURLAndHost() throws {
        #expect(try Self.value("url + '|' + host") == .proxies("http://www.example.com/a|www.example.com"))
        #expect(try Self.value("host", host: "b\u{fc}cher\"\\\n") == .proxies("b\u{fc}cher\"\\\n"))
    }

    @Test(arguments: [
        ("isPlainHostName('www')", "true"), ("isPlainHostName(host)", "false"), ("isPlainHostName('::1')", "false"),
        ("dnsDomainIs(host, '.example.com')", "true"), ("dnsDomainIs(host, '.example.org')", "false"),
        ("dnsDomainIs('com', '.example.com')", "false"),
        ("localHostOrDomainIs('www', 'www.example.com')", "true"),
        ("localHostOrDomainIs('www.other.com', 'www.example.com')", "false"),
        ("localHostOrDomainIs(host, host)", "true"),
        ("isInNet('198.51.100.7', '198.51.100.0', '255.255.255.0')", "true"),
        ("isInNet('198.51.101.7', '198.51.100.0', '255.255.255.0')", "false"),
        ("isInNet('255.0.0.1', '255.0.0.0', '255.0.0.0')", "true"),
        ("isInNet('1.2.3.4', '300.1.1.1', '0.0.0.0')", "false"),
        ("convert_addr('104.16.41.2')", "1745889538"), ("convert_addr('192.0.2.1')", "-1073741311"),
        ("myIpAddress()", "192.0.2.9"), ("dnsDomainLevels(host)", "2"), ("dnsDomainLevels('www')", "0"),
        ("shExpMatch('http://home.example.com/people/x', '*/people/*')", "true"),
        ("shExpMatch(url, '*/ari/*')", "false"), ("shExpMatch('a.b', 'a?b')", "true"),
        ("shExpMatch('axb', 'a.b')", "false"),
        ("shExpMatch('a[b](c)', 'a[b](?)')", "true"), ("shExpMatch('ab', 'a')", "false"),
        ("weekdayRange('SUN', 'SAT')", "true"), ("weekdayRange('MON', 'SUN', 'GMT')", "true"),
        ("weekdayRange(['SUN','MON','TUE','WED','THU','FRI','SAT'][new Date().getDay()])", "true"),
        ("weekdayRange(['SUN','MON','TUE','WED','THU','FRI','SAT'][(new Date().getUTCDay() + 1) % 7], 'GMT')", "false"),
        ("weekdayRange('DAY')", "false"),
        ("dateRange(1, 31)", "true"), ("dateRange('JAN', 'DEC', 'GMT')", "true"), ("dateRange(1995, 2500)", "true"),
        ("dateRange(1995)", "false"), ("dateRange(1, 'JAN', 1995, 31, 'DEC', 1996)", "false"),
        ("dateRange('OCT', 1995, 'DEC', 2500)", "true"), ("dateRange(1, 'JAN', 31, 'DEC')", "true"),
        (
            "dateRange(new Date().getDate(), ['JAN','FEB','MAR','APR','MAY','JUN','JUL','AUG','SEP','OCT','NOV','DEC']"
                + "[new Date().getMonth()], new Date().getFullYear())", "true"
        ),
        ("timeRange(0, 23)", "true"), ("timeRange(0, 0, 0, 23, 59, 59, 'GMT')", "true"),
        ("timeRange(0, 0, 23, 59)", "true"), ("timeRange((new Date().getUTCHours() + 12) % 24, 'GMT')", "false"),
        ("alert('x')", "undefined"),
    ]) func scriptFunctionReturnsItsValue(_ expression: String, _ value: String) throws {
        #expect(try Self.value(expression) == .proxies(value))
    }

    @Test func namesAreLookedUpByTheCaller() throws {
        #expect(try Self.value("isInNet(host, '198.51.100.0', '255.255.255.0')") == .lookup("www.example.com"))
        let names = ["www.example.com": "198.51.100.7", "none.example": "", "__proto__": "192.0.2.1"]
        #expect(
            try Self.value("isInNet(host, '198.51.100.0', '255.255.255.0')", names: names) == .proxies("true"))
        #expect(try Self.value("dnsResolve('none.example')", names: names) == .proxies("null"))
        #expect(try Self.value("isResolvable('none.example')", names: names) == .proxies("false"))
        #expect(try Self.value("isInNet('none.example', '0.0.0.0', '0.0.0.0')", names: names) == .proxies("false"))
        #expect(try Self.value("dnsResolve('__proto__')", names: names) == .proxies("192.0.2.1"))
        #expect(try Self.value("dnsResolve('toString')") == .lookup("toString"))
        #expect(try Self.value("dnsResolve('192.0.2.3')") == .proxies("192.0.2.3"))
    }

    @Test func lookupInsideACatchIsStillMade() throws {
        let engine = try ProxyScriptEngine(
            "function FindProxyForURL() { try { return dnsResolve('a.example'); } catch (e) { return 'DIRECT'; } }")
        #expect(try engine.evaluate(url: "http://b/", host: "b") == .lookup("a.example"))
        #expect(
            try engine.evaluate(url: "http://b/", host: "b", names: ["a.example": "192.0.2.1"]) == .proxies("192.0.2.1")
        )
    }

    @Test func scriptKeepsItsGlobals() throws {
        let engine = try ProxyScriptEngine("var n = 0; function FindProxyForURL() { return 'PROXY p' + ++n; }")
        for n in 1...3 { #expect(try engine.evaluate(url: "http://b/", host: "b") == .proxies("PROXY p\(n)")) }
    }

    @Test(arguments: ["null", "undefined", "''"]) func emptyResultMeansDirect(_ value: String) throws {
        let engine = try ProxyScriptEngine("function FindProxyForURL() { return \(value); }")
        #expect(try engine.evaluate(url: "http://b/", host: "b") == .proxies(""))
    }

    @Test(arguments: [
        ("function FindProxyForURL( {", "SyntaxError"), ("var a = 1;", "it has no function FindProxyForURL"),
        ("throw new Error('no')", "no"), ("function FindProxyForURL() { return missing; }", "ReferenceError"),
        ("dnsResolve('a.example');", "before it is asked"),
        ("function FindProxyForURL() { return f(); } function f() { return 1 + f(); }", "RangeError"),
        ("function FindProxyForURL() { throw { toString: function () { throw 1 } } }", "it cannot be run"),
        (String(repeating: " ", count: 1 << 20 | 1), "more than"),
        ("function FindProxyForURL() { return " + String(repeating: "(", count: 100_000), ""),
    ]) func faultyScriptIsAnError(_ source: String, _ text: String) {
        let failure = #expect(throws: ProxyScriptFailure.self) {
            try ProxyScriptEngine(source).evaluate(url: "http://b/", host: "b")
        }
        let description = failure?.description ?? ""
        #expect(text.isEmpty || description.contains(text), "\(description)")
    }

    @Test(arguments: [
        "while (true) {}", "while (true) { try { while (true) { [].concat([1], 'x'.split('')) } } catch (e) {} }",
        "/^(a+)+$/.test(new Array(60).join('a') + 'c');",
    ]) func endlessScriptIsStopped(_ body: String) throws {
        let engine = try ProxyScriptEngine(
            "function FindProxyForURL(url, host) { if (host === 'b') return 'DIRECT'; \(body) }",
            timeLimit: .milliseconds(300))
        for _ in 0..<3 {
            #expect(throws: ProxyScriptFailure.outOfTime(.milliseconds(300))) {
                try engine.evaluate(url: "http://a/", host: "a")
            }
            #expect(try engine.evaluate(url: "http://b/", host: "b") == .proxies("DIRECT"))
        }
    }

    /// The C library locks the time zone and the heap while it works on them. Nothing may be stopped with such a lock.
    @Test(arguments: [
        "new Date().getHours();", "new Date().setHours(3);", "new Date(2026, 1, 1);", "Date();", "String(new Date());",
        "Date.parse('Tue, 24 Nov 2026 06:15:48 GMT');", "Date.parse('2026-11-24T06:15:48');", "Date.parse('x');",
        "new Date('24 Nov 2026 06:15');", "new Date() + 1; new Date() - 1; new Date() < new Date(1);",
        "new Date().toLocaleString();", "new Date().toLocaleDateString(); new Date().toLocaleTimeString();",
        "new Date().toDateString(); new Date().toTimeString();", "new Date().getTimezoneOffset();",
        "new Date().getMilliseconds();", "new (new Date().constructor)(2026, 1, 1);", "new Date().getYear();",
        "weekdayRange('MON', 'FRI');", "dateRange('JAN', 'MAR'); timeRange(9, 17);",
        "JSON.stringify(new Date()); new Date().toUTCString();", "[new Date()].toLocaleString();",
        "Math.sin(Math.random()); Math.pow(2, 0.5); Math.exp(3);",
        "(1234.5678).toFixed(2); (1e21).toString(36); parseFloat('1.5e300'); (0.1).toPrecision(21);",
        "/(a|b)+c/.test('ababab'); 'abcabc'.replace(/b/g, 'x').split('x').join('');",
        "JSON.parse('[' + new Array(20000).join('1.5,') + '1]'); JSON.stringify(new Array(20000));",
        "var s = ''; for (var i = 0; i < 1000; i++) s += i;", "try { null.x; } catch (e) { String(e.stack); }",
        "eval('1 + 1'); new Function('a', 'return a')(1);", "encodeURIComponent('b\u{fc}cher'); unescape('%41');",
        "[3, 1, 2].sort(); [].concat([1], [2]); new Uint8Array(64);",
    ]) func stoppedScriptLeavesTheSystemUsable(_ body: String) throws {
        let engine = try ProxyScriptEngine(
            "function FindProxyForURL(url, host) { if (host === 'b') return 'DIRECT'; while (true) { \(body) } }",
            timeLimit: .milliseconds(40))
        for _ in 0..<8 {
            #expect(throws: ProxyScriptFailure.outOfTime(.milliseconds(40))) {
                try engine.evaluate(url: "http://a/", host: "a")
            }
        }
        #expect(SystemCheck.isUsable(), "The C library is locked.")
    }

    @Test(arguments: [
        "var a = []; while (true) a.push(new Array(1000).join('x') + a.length);",
        "var s = 'x'; while (true) s += s;",
    ]) func greedyScriptIsStopped(_ body: String) throws {
        let engine = try ProxyScriptEngine(
            "function FindProxyForURL(url, host) { if (host === 'b') return 'DIRECT'; \(body) }",
            timeLimit: .seconds(60))
        #expect(throws: ProxyScriptFailure.self) { try engine.evaluate(url: "http://a/", host: "a") }
        #expect(try engine.evaluate(url: "http://b/", host: "b") == .proxies("DIRECT"))
    }

    @Test(arguments: [
        ("new Date(0).toISOString()", "1970-01-01T00:00:00.000Z"),
        ("new Date(2026, 10, 24, 6, 15).getHours()", "6"),
        ("new Date(2026, 10, 24, 6, 15).toISOString()", "2026-11-24T00:45:00.000Z"),
        ("new Date('2026-11-24T06:15:48Z').getTime()", "1795500948000"),
        ("Date.parse('2026-11-24')", "1795478400000"), ("Date.parse('2026-11-24T06:15:48')", "1795481148000"),
        ("Date.parse('2026-11-24T06:15:48.250+05:30')", "1795481148250"), ("Date.parse('2026-11')", "1793491200000"),
        ("Date.parse('Tue, 24 Nov 2026 06:15:48 GMT')", "1795500948000"),
        ("Date.parse('Tue Nov 24 2026 06:15:48 GMT+0530')", "1795481148000"),
        ("Date.parse(String(new Date(1795500948000)))", "1795500948000"),
        ("Date.parse('24 November 2026 06:15')", "1795481100000"), ("Date.parse('Nov 24, 2026')", "1795458600000"),
        ("Date.parse('soon')", "NaN"), ("Date.parse('2026-13-24')", "NaN"), ("Date.parse('24 Foo 2026')", "NaN"),
        ("new Date(NaN)", "Invalid Date"), ("new Date(NaN).getHours()", "NaN"),
        ("new Date(98, 0).getFullYear()", "1998"),
        ("new Date(1795500948000)", "Tue Nov 24 2026 11:45:48 GMT+0530"), ("typeof Date(1)", "string"),
        ("new Date(0).toLocaleString() + new Date(0).toDateString()", "1970-01-01 05:30:00Thu Jan 01 1970"),
        ("new Date() instanceof Date && new Date().constructor === Date", "true"), ("Date.length + Date.name", "7Date"),
        ("new Date(2026, 0, 1).getTimezoneOffset()", "-330"),
        ("JSON.stringify(new Date(0))", "\"1970-01-01T00:00:00.000Z\""),
        ("new Date(new Date(5)).getTime()", "5"), ("new Date(2020, 0, 31).setMonth(1)", "1583087400000"),
        ("(function (d) { d.setHours(3, 4, 5, 6); return d.toISOString(); })(new Date(0))", "1969-12-31T21:34:05.006Z"),
        ("(function (d) { d.setYear(99); return d.getYear(); })(new Date(0))", "99"), ("new Date(0) - 1", "-1"),
        ("new Date({ valueOf: function () { return '24 Nov 2026'; } }).toISOString()", "2026-11-23T18:30:00.000Z"),
        ("timeRange(0, 23) && weekdayRange('SUN', 'SAT')", "true"),
    ]) func datesNeedNoLibrary(_ expression: String, _ value: String) throws {
        let engine = try ProxyScriptEngine("function FindProxyForURL() { return String(\(expression)); }")
        // India's.
        #expect(try engine.evaluate(url: "http://b/", host: "b", zone: 19_800) == .proxies(value))
    }

    @Test func localTimeIsTheSystems() throws {
        let engine = try ProxyScriptEngine(
            "function FindProxyForURL() { return String(new Date().getTimezoneOffset()); }")
        let seconds = TimeZone.current.secondsFromGMT()
        #expect(try engine.evaluate(url: "http://b/", host: "b") == .proxies("\(-seconds / 60)"))
    }

    /// An object takes two blocks, 88 bytes together, and 32 bytes beside each.
    @Test(arguments: [(150_000, true), (300_000, false)])
    func memoryOfManySmallObjectsIsCounted(_ count: Int, _ fits: Bool) throws {
        let engine = try ProxyScriptEngine(
            """
            function FindProxyForURL() {
                for (var i = 0, last = null; i < \(count); i++) last = { next: last };
                return "DIRECT";
            }
            """, timeLimit: .seconds(60))
        if fits {
            #expect(try engine.evaluate(url: "http://b/", host: "b") == .proxies("DIRECT"))
        } else {
            #expect(throws: ProxyScriptFailure.self) { try engine.evaluate(url: "http://b/", host: "b") }
        }
    }

    @Test func missingLibraryIsAnErrorWithItsPackage() {
        let failure = #expect(throws: ProxyScriptFailure.self) {
            try ProxyScriptEngine("", library: "libduktape-that-is-not-there.so.1")
        }
        let text = failure?.description ?? ""
        #expect(text.contains("libduktape207") && text.contains("libduktape-that-is-not-there.so.1"), "\(text)")
    }

    @Test func scriptReachesNothingOutside() throws {
        let names = [
            "require", "process", "Duktape", "readFile", "print", "load", "XMLHttpRequest",
            "fetch",
        ]
        for name in names { #expect(try Self.value("typeof \(name)") == .proxies("undefined")) }
    }
}

/// Calls functions of the C library that take its locks.
private enum SystemCheck {
    /// - Returns: `false` if they do not return within 10 seconds. The process cannot go on then.
    static func isUsable() -> Bool {
        let isDone = DispatchSemaphore(value: 0)
        Thread.detachNewThread {
            var (now, parts) = (time(nil), tm())
            localtime_r(&now, &parts)
            _ = mktime(&parts)
            gmtime_r(&now, &parts)
            free(malloc(1 << 20))
            for size in 1..<64 { free(malloc(size * 16)) }
            isDone.signal()
        }
        return isDone.wait(timeout: .now() + 10) == .success
    }
}
