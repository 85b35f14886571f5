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

    @Test func scriptReachesNothingOutside() throws {
        let names = ["require", "process", "Duktape.modSearch", "readFile", "print", "load", "XMLHttpRequest", "fetch"]
        for name in names { #expect(try Self.value("typeof \(name)") == .proxies("undefined")) }
    }
}
