import ControlClient
import FoundationEssentials
import Testing

@Suite("Addresses of a control plane")
struct ControlAddressTests {
    @Test(arguments: [
        ("127.0.0.1:8081", "http://127.0.0.1:8081"), ("127.0.0.1", "http://127.0.0.1:8081"),
        ("localhost:9000", "http://localhost:9000"), ("http://box.example", "http://box.example:8081"),
        ("https://box.example:443/", "https://box.example:443"), ("[::1]:8081", "http://[::1]:8081"),
        ("HTTP://[::1]", "http://[::1]:8081"),
    ])
    func tcpAddressIsRead(_ text: String, _ root: String) throws {
        let address = try #require(ControlAddress(text))
        #expect(address.root.absoluteString == root)
        #expect(address.description == root && address.socketPath == nil)
        #expect(address.isSecure == root.hasPrefix("https"))
    }

    @Test(arguments: [
        ("unix:///run/sluice/control.sock", "/run/sluice/control.sock"), ("/run/s.sock", "/run/s.sock"),
        ("./s.sock", "./s.sock"), ("../s.sock", "../s.sock"),
    ])
    func unixSocketAddressIsRead(_ text: String, _ path: String) throws {
        let address = try #require(ControlAddress(text))
        #expect(address.socketPath == path && address.root.absoluteString == "http://localhost")
        #expect(address.description == "unix://\(path)")
    }

    @Test(arguments: [
        "", "ws://127.0.0.1:8081", "http://", "http://127.0.0.1:0", "http://127.0.0.1:65536", "127.0.0.1:port",
        "http://127.0.0.1:8081/v1", "http://127.0.0.1:8081?x=1", "http://user@127.0.0.1", "http://u:p@127.0.0.1",
        "unix://run/x.sock", "unix:///" + String(repeating: "a", count: 108), "[::1", "a b",
    ])
    func invalidAddressIsRejected(_ text: String) {
        #expect(ControlAddress(text) == nil)
    }

    @Test(arguments: [("slc_abc-DEF_123", true), ("a+b/c==", true), ("", false), ("a b", false), ("a\r\nX: y", false)])
    func tokenMustFitAHeaderField(_ text: String, _ isOne: Bool) {
        #expect(ControlAccess.isToken(text) == isOne)
    }
}
