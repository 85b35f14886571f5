import Foundation
import TLSEngine

/// What a server showed to prove who it is, and what the configured roots make of it: the role of `SecTrust`.
///
/// Answer a challenge with `URLCredential(trust:)` to accept the server whatever `evaluate()` says. A program with roots of
/// its own asks `evaluate(anchors:)` first.
public final class ServerTrust: Sendable {
    /// The name or address that was asked for.
    public let host: String?
    /// The chain as the server sent it, each certificate as DER, its own first.
    public let certificates: [Data]
    private let request: VerificationRequest

    package init(_ request: VerificationRequest) {
        self.host = request.serverName
        self.certificates = request.peerChain.map { Data($0) }
        self.request = request
    }

    /// Whether the chain leads to a trusted root, is valid today, and is for the host; pins count too where they are set.
    public var isTrusted: Bool { self.request.verdict.isValid }

    /// The verdict as an error.
    /// - Throws: a `URLError` with the code that the load would fail with; its description tells what is wrong.
    public func evaluate() throws { try Self.require(self.request.verdict) }

    /// Whether the chain leads to one of these roots, is valid today, and is for the host. Pins do not count, nor does
    /// what the session made of the chain.
    ///
    /// From any thread, as often as wanted: nothing is remembered.
    /// - Parameters:
    ///   - anchors: certificates, each as PEM text with one or more of them, or as DER of one. An intermediate, or the
    ///     server's own certificate, is one as good as a root.
    ///   - andSystemRoots: whether the system's roots count as well.
    /// - Throws: a `URLError` with the code that a load would fail with; a `TLSFailure` for anchors that cannot be read,
    ///   or of which there are none.
    public func evaluate(anchors: [Data], andSystemRoots: Bool = false) throws {
        guard andSystemRoots || !anchors.isEmpty else {
            throw TLSFailure(.unreadableMaterial, reasons: ["there are no anchors to verify by: give at least one"])
        }
        let sources = anchors.map { CertificateSource.pem([UInt8]($0)) }
        try Self.require(self.request.verdict(by: andSystemRoots ? .systemAnd(sources) : .only(sources)))
    }

    private static func require(_ verdict: VerificationVerdict) throws {
        guard !verdict.isValid else { return }
        throw URLError(self.failure(verdict.code), userInfo: [NSLocalizedDescriptionKey: verdict.description])
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
