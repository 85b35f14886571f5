import ArgumentParser
import Foundation
import GatewayConfiguration
import GatewayCore
import HTTPSemantics
import WireText

/// `sluice token`: creates a bearer token for the control plane. Needs no gateway.
struct TokenCommand: AsyncParsableCommand {
    private static let exitCodes = ExitStatus.help([
        .success: nil, .usage: nil, .internalError: nil, .inputOrOutput: nil,
    ])
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Create a bearer token for the control plane.",
        discussion: """
            Prints the token, which is not stored anywhere, and the lines for the configuration, which contain only its hash.

            Scopes: read shows everything; operate opens, changes and closes connections and transfers; configure changes \
            listeners, routes and upstreams; metrics reads /metrics.

            EXAMPLES
              sluice token --name ops --scope read --scope operate --expires 90d
              sluice token --name scraper --scope metrics --json | jq -r .token

            \(Self.exitCodes)
            """)

    @Option(help: .value("name", "Name of the holder, for the audit log."))
    var name: String

    @Option(parsing: .singleValue, help: .value("scope", "Scope: read, operate, configure or metrics. Repeatable."))
    var scope: [String]

    @Option(help: .value("duration", "Lifetime, 1m to 3650d, or none. (default: none)"))
    var expires: String?

    @Flag(help: "Write one JSON object: token, name, hash, scopes, expires.")
    var json = false

    private struct NewToken: Encodable {
        let token: String
        let name: String
        let hash: String
        let scopes: [String]
        let expires: String?
    }

    func run() async throws {
        try await ErrorReporter.reporting {
            let token = try self.newToken()
            let text = self.json ? try Self.json(token) : Self.lines(token)
            try ProcessOutput.print(text + "\n")
        }
    }

    private func newToken() throws -> NewToken {
        var reader = OptionReader()
        _ = reader.value("--name", self.name, ValueSyntax<String>.name)
        let known = ControlScope.allCases.map(\.rawValue)
        for scope in self.scope where !known.contains(scope) {
            reader.reject(
                "--scope", "expected one of \(known.joined(separator: ", ")), found \(QuotedText.quoted(scope))")
        }
        let span = ValueSyntax<Duration>.duration(.seconds(60) ... .seconds(3650 * 86400))
        let life = reader.value("--expires", self.expires, span.orNone) ?? nil
        guard reader.problems.isEmpty else { throw UsageProblems(problems: reader.problems) }
        var generator = SystemRandomNumberGenerator()
        let random = (0..<BearerToken.randomByteCount).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        let secret = BearerToken.secret(random)
        let digest = MessageDigest.of(Array(secret.utf8), by: .sha256)
        let end = life.map { Date(timeIntervalSinceNow: $0 / .seconds(1)).formatted(.iso8601) }
        return NewToken(
            token: secret, name: self.name, hash: BearerToken.hash(digest: digest),
            scopes: known.filter(self.scope.contains), expires: end)
    }

    private static func lines(_ token: NewToken) -> String {
        """
        \(token.token)

        Keep the token above secret; it is not shown again. Add this to the configuration:

        control:
          tokens:
            - name: \(token.name)
              hash: \(token.hash)
              scopes: [\(token.scopes.joined(separator: ", "))]\(token.expires.map { "\n      expires: \"\($0)\"" } ?? "")
        """
    }

    private static func json(_ token: NewToken) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(token), as: UTF8.self)
    }
}

/// The text of a bearer token (RFC 6750): the secret that a client sends, and the hash stored in the configuration.
package enum BearerToken {
    /// Identifies the text as a secret, also for secret scanners.
    private static let prefix = "slc_"
    /// Random bytes of a secret. 256 bits cannot be guessed, so a fast hash is enough.
    package static let randomByteCount = 32

    /// The prefix, and the random bytes in base64url without padding (RFC 4648 §5).
    package static func secret(_ random: [UInt8]) -> String {
        let text = Base64.encoded(random).replacing("+", with: "-").replacing("/", with: "_")
        return self.prefix + text.replacing("=", with: "")
    }

    /// The hash as written in the configuration.
    /// - Parameter digest: SHA-256 of the whole secret's UTF-8.
    package static func hash(digest: [UInt8]) -> String { "sha256:" + Hexadecimal.text(digest) }
}
