import GatewayCore
import StreamTransport
import Testing

@Suite("Forwarding fields towards WebSocket upstreams, RFC 7239")
struct ForwardedFieldsTests {
    private static let four = SocketAddress.ipv4(address: 0xC000_0207, port: 4711)
    private static let six = SocketAddress.ipv6(high: 0x2001_0DB8_CAFE_0000, low: 0x17, scope: 0, port: 4711)

    private static func request(_ client: SocketAddress, isSecure: Bool = true, host: String? = "example.com")
        -> ForwardedRequest
    {
        var request = ForwardedRequest(client: client, isSecure: isSecure, host: host)
        request.forwarded = ["for=198.51.100.1", "for=\"[2001:db8::9]\";proto=http"]
        request.forwardedFor = ["198.51.100.1", "10.0.0.1"]
        request.forwardedProto = ["http"]
        request.forwardedHost = ["public.example"]
        return request
    }

    private static func text(_ fields: ForwardedFields) -> [String] {
        fields.fields.map { "\($0.name): \($0.value)" }
    }

    @Test func forwardedFieldsOfAClientAreReplaced() {
        let fields = ForwardedFields(Self.request(Self.four), trusted: false)
        #expect(
            Self.text(fields) == [
                "Forwarded: for=192.0.2.7;proto=https;host=example.com", "X-Forwarded-For: 192.0.2.7",
                "X-Forwarded-Proto: https", "X-Forwarded-Host: example.com",
            ])
    }

    @Test func forwardedFieldsOfATrustedPeerAreExtended() {
        let fields = ForwardedFields(Self.request(Self.four), trusted: true)
        #expect(
            Self.text(fields) == [
                "Forwarded: for=198.51.100.1, for=\"[2001:db8::9]\";proto=http, for=192.0.2.7;proto=https;host=example.com",
                "X-Forwarded-For: 198.51.100.1, 10.0.0.1, 192.0.2.7", "X-Forwarded-Proto: http",
                "X-Forwarded-Host: public.example",
            ])
    }

    /// RFC 7239 §7.4
    @Test func fieldsOfAPeerWithoutForwardedAreInItToo() {
        var request = Self.request(Self.four, isSecure: false)
        request.forwarded = []
        request.forwardedFor = ["192.0.2.43, 2001:db8:cafe::17", "_hidden"]
        request.forwardedProto = ["https"]
        #expect(
            ForwardedFields(request, trusted: true).forwarded
                == "for=192.0.2.43;proto=https;host=public.example, for=\"[2001:db8:cafe::17]\", for=unknown, "
                + "for=192.0.2.7;proto=http;host=example.com")
        request.forwardedFor = []
        #expect(
            ForwardedFields(request, trusted: true).forwarded
                == "proto=https;host=public.example, for=192.0.2.7;proto=http;host=example.com")
        #expect(
            ForwardedFields(request, trusted: false).forwarded == "for=192.0.2.7;proto=http;host=example.com")
    }

    @Test(arguments: [
        ("203.0.113.7:4711", "\"203.0.113.7:4711\""), ("[2001:db8::1]:4711", "\"[2001:db8::1]:4711\""),
        ("[2001:db8::1]", "\"[2001:db8::1]\""), ("2001:db8::1", "\"[2001:db8::1]\""), ("203.0.113.7", "203.0.113.7"),
        ("203.0.113.7:", "unknown"), ("203.0.113.7:65536", "unknown"), ("203.0.113.7:x", "unknown"),
        ("[2001:db8::1]x", "unknown"), ("[2001:db8::1", "unknown"), ("name:80", "unknown"), ("unknown", "unknown"),
    ])
    func addressMayHaveThePortOfTheClient(_ text: String, _ node: String) {
        var request = ForwardedRequest(client: Self.four, isSecure: false, host: nil)
        request.forwardedFor = [text]
        #expect(ForwardedFields(request, trusted: true).forwarded == "for=\(node), for=192.0.2.7;proto=http")
        #expect(ForwardedFields(request, trusted: true).forwardedFor == "\(text), 192.0.2.7")
    }

    @Test func firstSchemeAndHostOfAListAreTheClients() {
        var request = Self.request(Self.four, isSecure: false)
        request.forwarded = []
        request.forwardedFor = []
        request.forwardedProto = ["https, http"]
        request.forwardedHost = ["public.example,inner.example"]
        #expect(
            Self.text(ForwardedFields(request, trusted: true)) == [
                "Forwarded: proto=https;host=public.example, for=192.0.2.7;proto=http;host=example.com",
                "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https", "X-Forwarded-Host: public.example",
            ])
    }

    /// Ours would be a part of the string: an upstream would not know the client.
    @Test(arguments: ["for=\"198.51.100.1", "for=\"a\\\"", "for=\"a\";host=\""])
    func forwardedWithAStringWithoutAnEndIsReplaced(_ text: String) {
        var request = Self.request(Self.four)
        request.forwarded = ["for=198.51.100.2", text]
        #expect(
            ForwardedFields(request, trusted: true).forwarded
                == "for=198.51.100.1;proto=http;host=public.example, for=10.0.0.1, "
                + "for=192.0.2.7;proto=https;host=example.com")
    }

    @Test func ipv6AddressesAndPortsAreQuoted() {
        let fields = ForwardedFields(
            ForwardedRequest(client: Self.six, isSecure: false, host: "example.com:8080"), trusted: true)
        #expect(fields.forwarded == "for=\"[2001:db8:cafe::17]\";proto=http;host=\"example.com:8080\"")
        #expect(fields.forwardedFor == "2001:db8:cafe::17")
    }

    @Test func ipv4MappedAddressIsForwardedAsIPv4() {
        let mapped = SocketAddress.ipv6(high: 0, low: 0xFFFF_C000_0207, scope: 0, port: 1)
        #expect(ForwardedFields(Self.request(mapped), trusted: false).forwardedFor == "192.0.2.7")
    }

    @Test func aUnixPeerHasNoAddress() {
        let fields = ForwardedFields(
            ForwardedRequest(client: .unix(path: "/x"), isSecure: false, host: nil), trusted: false)
        #expect(Self.text(fields) == ["Forwarded: for=unknown;proto=http", "X-Forwarded-Proto: http"])
        #expect(ForwardedFields(Self.request(.unix(path: "")), trusted: true).forwardedFor == "198.51.100.1, 10.0.0.1")
    }

    @Test(arguments: ["a\r\nX-Evil: 1", "a\u{0}", "ü.example", ""])
    func forwardedValuesCannotForgeAField(_ text: String) {
        var request = ForwardedRequest(client: Self.four, isSecure: true, host: text)
        request.forwarded = [text]
        request.forwardedFor = [text]
        request.forwardedProto = [text]
        request.forwardedHost = [text]
        let fields = ForwardedFields(request, trusted: true)
        #expect(
            Self.text(fields) == [
                "Forwarded: for=192.0.2.7;proto=https", "X-Forwarded-For: 192.0.2.7", "X-Forwarded-Proto: https",
            ])
    }

    @Test func quotedHostIsEscaped() {
        let fields = ForwardedFields(
            ForwardedRequest(client: Self.four, isSecure: true, host: "a\"b\\c"), trusted: false)
        #expect(fields.forwarded == "for=192.0.2.7;proto=https;host=\"a\\\"b\\\\c\"")
    }
}
