import GatewayConfiguration
import StreamTransport
import WebTokens

/// One entry of `tokens`, ready to verify. Its keys may be fetched, and replaced at any time. From any thread.
package final class TokenSource: Sendable {
    package let settings: TokenSettings
    package let verifier: TokenVerifier

    /// Reads the keys from their file. Those of a URL are to be fetched.
    /// - Parameter former: its keys stay in use until those of the same URL are fetched again.
    /// - Throws: `.file` or `.tokenKeys`.
    package init(_ settings: TokenSettings, former: TokenSource? = nil) throws(GatewayPlanError) {
        self.settings = settings
        let kept = former?.settings.keys == settings.keys ? former?.verifier.keys : nil
        let keys = try Self.keys(of: settings) ?? kept ?? TokenKeySet([])
        self.verifier = TokenVerifier(settings.rules, keys: keys)
    }

    /// Address of the keys; `nil` if they are in the configuration or in a file.
    package var keySetURL: String? {
        if case .url(let url) = self.settings.keys { url.description } else { nil }
    }

    /// - Returns: `nil` for those of a URL.
    static func keys(of settings: TokenSettings) throws(GatewayPlanError) -> TokenKeySet? {
        let allowsShort = settings.allowsShortSecret
        switch settings.keys {
        case .url: return nil
        case .secret(.text(let text)):
            return try self.keys("secret") { () throws(TokenKeyProblem) in
                try .read(secret: Array(text.utf8), allowsShort: allowsShort)
            }
        case .secret(.file(let path)):
            let line = try self.content(path).prefix { $0 != 0x0A && $0 != 0x0D }
            return try self.keys(path) { () throws(TokenKeyProblem) in
                try .read(secret: Array(line), allowsShort: allowsShort)
            }
        case .file(let path):
            let bytes = try self.content(path)
            return try self.keys(path) { () throws(TokenKeyProblem) in try .read(file: bytes) }
        }
    }

    private static func content(_ path: String) throws(GatewayPlanError) -> [UInt8] {
        do throws(SystemError) {
            return try SystemFile.read(path, limit: TokenKeySet.byteLimit + 1)
        } catch {
            throw GatewayPlanError(.file(path, error))
        }
    }

    private static func keys(
        _ place: String, _ read: () throws(TokenKeyProblem) -> TokenKeySet
    ) throws(GatewayPlanError) -> TokenKeySet {
        do throws(TokenKeyProblem) {
            return try read()
        } catch {
            throw GatewayPlanError(.tokenKeys("\(place): \(error)"))
        }
    }
}
