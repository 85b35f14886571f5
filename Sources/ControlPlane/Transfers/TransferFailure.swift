import ControlAPI
import Foundation
import HTTPTransport
import URLLoading

/// Why a transfer came to no good end.
struct TransferFailure: Error, Sendable {
    let code: String
    let detail: String
    var isRetryable = false

    init(_ code: String, _ detail: String, isRetryable: Bool = false) {
        self.code = code
        self.detail = detail
        self.isRetryable = isRetryable
    }

    init(_ error: any Error) {
        guard let error = error as? URLError else {
            self.init("failed", "\(error)")
            return
        }
        let detail = error.localizedDescription
        if let cause = error.userInfo[NSUnderlyingErrorKey] as? ExchangeFailure, cause == .notAdmitted {
            self.init("target-not-allowed", detail)
            return
        }
        switch error.code {
        case .timedOut: self.init("timed-out", detail, isRetryable: true)
        case .cannotFindHost, .dnsLookupFailed: self.init("cannot-resolve", detail, isRetryable: true)
        case .cannotConnectToHost, .notConnectedToInternet: self.init("cannot-connect", detail, isRetryable: true)
        case .networkConnectionLost: self.init("connection-lost", detail, isRetryable: true)
        case .secureConnectionFailed, .serverCertificateHasBadDate, .serverCertificateUntrusted,
            .serverCertificateHasUnknownRoot, .serverCertificateNotYetValid, .clientCertificateRejected,
            .clientCertificateRequired:
            self.init("tls-failed", detail)
        case .httpTooManyRedirects, .redirectToNonExistentLocation: self.init("bad-redirect", detail)
        case .badServerResponse, .cannotParseResponse, .cannotDecodeContentData, .cannotDecodeRawData:
            self.init("protocol-violation", detail)
        case .requestBodyStreamExhausted: self.init("body-incomplete", detail)
        case .cannotCreateFile, .cannotOpenFile, .cannotWriteToFile, .fileDoesNotExist, .noPermissionsToReadFile:
            self.init("file-unusable", detail)
        default: self.init("failed", detail)
        }
    }

    var shown: TransferError { TransferError(code: self.code, detail: self.detail, retryable: self.isRetryable) }
}
