import ControlPlane
import GatewayConfiguration
import GatewayCore
import Testing

@Suite("Reloading settings of the control plane")
struct ControlFollowingTests {
    private func settings(port: UInt16 = 1, tokens: [String] = []) throws -> ControlSettings {
        var settings = ControlSettings()
        settings.address = .tcp(.loopback, port: port)
        let hash = try #require(TokenHash(digest: Array(repeating: 1, count: 32)))
        settings.tokens = tokens.map { ControlToken(name: $0, hash: hash, scopes: [.read], expires: nil) }
        return settings
    }

    @Test func reloadChangesCallersHostsAndLimits() throws {
        var next = try self.settings(tokens: ["b"])
        next.maximumRequests = 7
        let followed = try self.settings(tokens: ["a"]).reloaded(with: next)
        #expect(followed == next)
        // On the same address the file may remove all tokens.
        #expect(try self.settings(tokens: ["a"]).reloaded(with: self.settings()).tokens.isEmpty)
    }

    @Test func reloadDoesNotChangeTheAddress() throws {
        let followed = try self.settings(tokens: ["a"]).reloaded(with: self.settings(port: 2, tokens: ["b"]))
        #expect(followed.address == .tcp(.loopback, port: 1))
        #expect(followed.tokens.map(\.name) == ["b"])
    }

    @Test func unixSocketWithoutTokensGrantsNothingOnTCP() throws {
        var next = try self.settings()
        next.address = .unix(path: "/run/control.sock", mode: 0o600)
        #expect(try self.settings(tokens: ["a"]).reloaded(with: next).tokens.map(\.name) == ["a"])
        next.address = nil
        #expect(try self.settings(tokens: ["a"]).reloaded(with: next).tokens.map(\.name) == ["a"])
    }

    @Test func reloadDoesNotSwitchTLSOnOrOff() throws {
        var secure = try self.settings(tokens: ["a"])
        secure.tls = ServerTLSSettings(certificates: [])
        #expect(try secure.reloaded(with: self.settings(tokens: ["a"])).tls == secure.tls)
        #expect(try self.settings(tokens: ["a"]).reloaded(with: secure).tls == nil)
    }
}
