import Foundation
import URLLoading

extension ControlFailure {
    /// A request that had no answer, or lost it.
    init(_ error: any Error, at address: ControlAddress) {
        guard let error = error as? URLError else {
            self.init(.fault, "\(address): \(error)")
            return
        }
        let said = error.localizedDescription
        let words = said.hasSuffix(".") ? String(said.dropLast()) : said
        switch error.code {
        case .cancelled: self.init(.cancelled, "interrupted")
        case .cannotConnectToHost, .cannotFindHost, .dnsLookupFailed, .notConnectedToInternet:
            self.init(
                .noConnection, "no control plane at \(address): \(words)",
                remedy: "start one with 'sluice serve', or name another with --control")
        case .timedOut:
            self.init(.later, "\(address) did not answer in time", remedy: "try again, or look at the gateway's log")
        case .networkConnectionLost:
            self.init(
                .noConnection, "\(address) ended the connection before its answer was whole",
                remedy: "the gateway may have ended; its log says more")
        case .badServerResponse, .cannotParseResponse: self.init(foreign: 0, at: address)
        default: self.init(securing: error.code, words, at: address)
        }
    }

    private init(securing code: URLError.Code, _ words: String, at address: ControlAddress) {
        switch code {
        case .serverCertificateUntrusted, .serverCertificateHasUnknownRoot, .serverCertificateHasBadDate,
            .serverCertificateNotYetValid:
            self.init(
                .secure, "the certificate of \(address) is not trusted: \(words)",
                remedy: "trust its authority with --control-ca FILE")
        case .clientCertificateRequired, .clientCertificateRejected:
            self.init(
                .secure, "\(address) wants another certificate of us: \(words)",
                remedy: "give one with --control-certificate and --control-key")
        case .secureConnectionFailed:
            self.init(
                .secure, "TLS with \(address) failed: \(words)",
                remedy: address.isSecure ? "maybe there is no TLS: try http://" : "")
        default: self.init(.noConnection, "\(address): \(words)")
        }
    }
}
