import Foundation
import TLSEngine

/// What a server showed to prove who it is, and what the configured roots make of it: the role of `SecTrust`.
///
/// Answer a challenge with `URLCredential(trust:)` to accept the server whatever `evaluate()` says.
public final class ServerTrust: Sendable {
    /// The name that was asked for; `nil` where the server was asked for by address.
    public let host: String?
    /// The chain as the server sent it, each certificate as DER, its own first.
    public let certificates: [Data]
    private let verdict: VerificationVerdict

    package init(_ request: VerificationRequest) {
        self.host = request.serverName
        self.certificates = request.peerChain.map { Data($0) }
        self.verdict = request.verdict
    }

    /// Whether the chain leads to a trusted root, is valid today, and is for the host; pins count too where they are set.
    public var isTrusted: Bool { self.verdict.isValid }

    /// The verdict as an error.
    /// - Throws: a `URLError` with the code that the load would fail with; its description tells what is wrong.
    public func evaluate() throws {
        guard !self.isTrusted else { return }
        throw URLError(
            Self.failure(self.verdict.code), userInfo: [NSLocalizedDescriptionKey: self.verdict.description])
    }

    /// The codes are those of `X509_verify_cert_error_string`.
    package static func failure(_ code: Int32) -> URLError.Code {
        switch code {
        case 9: .serverCertificateNotYetValid
        case 10: .serverCertificateHasBadDate
        case 2, 18, 19, 20, 21, 27: .serverCertificateHasUnknownRoot
        default: .serverCertificateUntrusted
        }
    }
}
