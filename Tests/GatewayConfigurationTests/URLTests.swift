import GatewayConfiguration
import Testing

@Suite("URLs of listeners and endpoints")
struct URLTests {
    @Test(arguments: [
        ("tcp://127.0.0.1:5900", "tcp://127.0.0.1:5900"), ("TLS://Example.COM:5432", "tls://example.com:5432"),
        ("tcp://host:1/", "tcp://host:1"), ("ws://host", "ws://host/"), ("ws://host:80/a?b=c", "ws://host/a?b=c"),
        ("wss://host:443", "wss://host/"), ("wss://host:80", "wss://host:80/"),
        ("ws://[::1]:9000/x", "ws://[::1]:9000/x"),
        ("ws://host?x=1", "ws://host/?x=1"), ("unix:///run/app.sock", "unix:///run/app.sock"),
        ("ws+unix:///run/a.sock", "ws+unix:///run/a.sock:/"),
        ("ws+unix:///run/a.sock:/chat/{room}?x", "ws+unix:///run/a.sock:/chat/{room}?x"),
        ("tls+unix:///run/a.sock", "tls+unix:///run/a.sock"), ("ws://h/a/{b}/c{d}", "ws://h/a/{b}/c{d}"),
        ("tcp://my_host-1.internal:65535", "tcp://my_host-1.internal:65535"),
    ])
    func endpointIsRead(text: String, normal: String) throws {
        let url = try EndpointURL(text)
        #expect(url.description == normal)
        #expect(try EndpointURL(normal) == url)
    }

    @Test(arguments: [
        "", "host", "host:80", "http://host", "https://host/", "tcp://", "tcp://host", "tls://host", "tcp://host:",
        "tcp://host:0",
        "tcp://host:65536", "tcp://host:-1", "tcp://host:80:80", "tcp://host:5900/path", "tcp://user@host:1",
        "ws://u:p@host/",
        "ws://host/#part", "ws://host/ space", "ws://höst/", "ws://host/ä", "ws://[::1", "ws://[::1]x",
        "ws://[1.2.3.4]", "ws://::1",
        "ws://256.1.1.1", "ws://1.2.3", "ws://-a", "ws://a-", "ws://a..b", "ws:///path", "ws://host/{",
        "ws://host/{a-b}", "ws://host/}",
        "ws://host/\\", "unix://run/app.sock", "unix:///", "unix:///a/", "unix:///run/a.sock:/x", "unix:///run/a?b",
        "tcp+unix:///a/b", "unix+unix:///a/b", "ws+unix://host/a", "ws+tcp://host:1", "ws+unix+unix:///a/b",
        "ws+systemd://a",
        "://host:1", "+unix:///a", "ws://host:8\u{0}0", "ws://*", "unix:///" + String(repeating: "a", count: 107),
        "ws://" + String(repeating: "a", count: 4092),
    ])
    func invalidEndpointURLIsRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try EndpointURL(text) }
    }

    @Test(arguments: [
        ("ws://::1:8080/", "one colon at most after ws://, or an IPv6 address in brackets", "ws://[::1]:8080"),
        ("tcp://h:0", "a port from 1 to 65535", ""), ("tcp://h:65536", "a port from 1 to 65535", ""),
        ("unix://@a", "the absolute path of a socket", "abstract sockets are not supported"),
        ("http://h/", "a URL that begins with tcp, tls, unix, ws or wss", "for WebSocket, write ws://"),
        ("HTTPS://h/", "a URL that begins with tcp, tls, unix, ws or wss", "for WebSocket, write wss://"),
    ])
    func refusalSaysWhatIsMeant(text: String, expected: String, remedy: String) {
        let error = #expect(throws: ValueSyntaxError.self) { try EndpointURL(text) }
        #expect(error?.expected.hasPrefix(expected) == true, "\(error as Any)")
        #expect(error?.remedy.contains(remedy) == true || remedy.isEmpty, "\(error as Any)")
    }

    @Test func hostFieldLeavesTheStandardPortOut() throws {
        #expect(try EndpointURL("ws://Host:80/").authority == "host")
        #expect(try EndpointURL("wss://host:80/").authority == "host:80")
        #expect(try EndpointURL("wss://[2001:db8::1]/").authority == "[2001:db8::1]")
        #expect(try EndpointURL("ws://[2001:db8::1]:81/").authority == "[2001:db8::1]:81")
        #expect(try EndpointURL("ws+unix:///run/a.sock").authority == "localhost")
    }

    @Test func hostOfTheURLIsVerified() throws {
        #expect(try EndpointURL("wss://Example.com/").hostName == "example.com")
        #expect(try EndpointURL("tls://[::1]:1").hostName == "::1")
        #expect(try EndpointURL("tls+unix:///run/a.sock").hostName == nil)
    }

    @Test func parametersAndQueryAreInsertedIntoTheResource() throws {
        let resource = try EndpointURL("ws://h/rooms/{room}/x").resource
        #expect(resource.parameters == ["room"])
        #expect(resource.resource(parameters: ["room": "a%20b"], query: nil) == "/rooms/a%20b/x")
        #expect(resource.resource(parameters: ["room": "a"], query: "t=1") == "/rooms/a/x?t=1")
        #expect(resource.resource(parameters: [:], query: "") == "/rooms//x")
        #expect(try EndpointURL("ws://h/x?a=1").resource.resource(parameters: [:], query: "b=2") == "/x?a=1&b=2")
        #expect(try EndpointURL("ws://h").resource.resource(parameters: [:], query: nil) == "/")
    }

    @Test func aParameterInAQueryStaysOneValue() throws {
        let resource = try EndpointURL("ws://h/{a}?a={a}&{b}=1").resource
        #expect(
            resource.resource(parameters: ["a": "x&y=1", "b": "k+;"], query: nil) == "/x&y=1?a=x%26y%3D1&k%2B%3B=1")
        #expect(resource.resource(parameters: ["a": "x%26y", "b": "k"], query: "t") == "/x%26y?a=x%26y&k=1&t")
    }

    @Test(arguments: [
        ("tcp://127.0.0.1:1883", ListenerKind.tcp, "127.0.0.1:1883", ""), ("ws://localhost", .ws, "127.0.0.1:80", ""),
        ("wss://*", .wss, "*:443", ""), ("ws://0.0.0.0:0/vnc", .ws, "0.0.0.0:0", "/vnc"),
        ("tls://[::]:8443", .tls, "[::]:8443", ""),
        ("unix:///run/app.sock", .unix, "/run/app.sock", ""), ("ws+unix:///run/a.sock", .ws, "/run/a.sock", ""),
        ("wss+unix:///run/a.sock:/x", .wss, "/run/a.sock", "/x"), ("ws+systemd://web", .ws, "systemd:web", ""),
        ("tcp+systemd://0", .tcp, "systemd:0", ""), ("WS://127.0.0.1:80", .ws, "127.0.0.1:80", ""),
    ])
    func listenURLGivesKindAndAddress(text: String, kind: ListenerKind, address: String, resource: String) throws {
        let url = try ListenURL(text)
        #expect(url.kind == kind)
        #expect(url.address.description == address)
        #expect(url.resource == resource)
    }

    @Test(arguments: [
        "", "127.0.0.1:80", "http://127.0.0.1:80", "tcp://127.0.0.1", "tcp://example.com:80", "tcp://:80",
        "tcp://127.0.0.1:65536",
        "ws://127.0.0.1:+1", "ws://::1:80", "ws://[127.0.0.1]:80", "ws://[*]:80", "ws://u@127.0.0.1", "tcp+unix:///a/b",
        "unix+systemd://a",
        "unix://", "ws+systemd://", "ws+systemd://a/b c", "ws+systemd://-a", "tcp+systemd://99999", "unix:///run/é",
    ])
    func invalidListenURLIsRefused(text: String) {
        #expect(throws: ValueSyntaxError.self) { try ListenURL(text) }
    }
}
