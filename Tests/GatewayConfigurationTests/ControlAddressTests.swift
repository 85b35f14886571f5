import GatewayConfiguration
import GatewayTestSupport
import TestSupport
import Testing

@Suite("Where the control plane listens")
struct ControlAddressTests {
    private func settings(_ control: String) throws -> ControlSettings {
        try ConfigurationSamples.configuration(
            "listeners: [{name: a, listen: 'ws://127.0.0.1:0'}]\nroutes: [{name: b, path: /, target: echo}]\n\(control)"
        ).control
    }

    @Test func controlAddressDefaultsToLoopback() throws {
        let settings = try self.settings("")
        #expect(settings.address == .tcp(.loopback, port: 8081))
        #expect(!settings.isExplicit)
    }

    @Test(arguments: [
        ("http://127.0.0.1:9000", ControlSettings.Address.tcp(.loopback, port: 9000)),
        ("http://localhost", .tcp(.loopback, port: 8081)), ("http://127.1.2.3:0", .tcp(.v4(0x7F01_0203), port: 0)),
        ("http://[::1]:1", .tcp(.v6(high: 0, low: 1), port: 1)),
        ("unix:///run/c.sock", .unix(path: "/run/c.sock", mode: 0o600)),
    ])
    func controlAddressIsRead(_ text: String, _ address: ControlSettings.Address) throws {
        let settings = try self.settings("control: {address: '\(text)'}")
        #expect(settings.address == address)
        #expect(settings.isExplicit)
    }

    @Test func controlAddressCanBeNone() throws {
        #expect(try self.settings("control: {address: none}").address == nil)
    }

    @Test(arguments: [
        "http://0.0.0.0:8081", "http://192.0.2.1:8081", "http://[::]:1", "http://*:1", "https://127.0.0.1:1",
        "tcp://127.0.0.1:1", "http://127.0.0.1:1/v1", "http://example.com", "127.0.0.1:8081",
        "http://[::ffff:192.0.2.1]:1", "x",
    ])
    func otherControlAddressIsRefused(_ text: String) {
        #expect(throws: ConfigurationProblems.self) { try self.settings("control: {address: '\(text)'}") }
    }

    @Test func onlyASocketFileHasAMode() {
        #expect(throws: ConfigurationProblems.self) { try self.settings("control: {mode: 0600}") }
    }
}
