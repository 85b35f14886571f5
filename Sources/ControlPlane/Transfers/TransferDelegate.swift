import ControlAPI
import Foundation
import GatewayConfiguration
import GatewayCore
import HTTPTransport
import Synchronization
import URLLoading

/// The session delegate of one attempt of a transfer.
final class TransferDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, Sendable {
    private let transfer: RunningTransfer
    private let plan: TransferPlan
    private let attempt: Int
    /// Provides a streamed body.
    private let pipe: BodyPipe?
    private let targets: TransferTargets
    private let isBodyUsed = Atomic<Bool>(false)

    init(_ transfer: RunningTransfer, attempt: Int, pipe: BodyPipe?, targets: TransferTargets) {
        self.transfer = transfer
        self.plan = transfer.plan
        self.attempt = attempt
        self.pipe = pipe
        self.targets = targets
        super.init()
    }

    // MARK: Decisions

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        guard self.plan.followsRedirects else { return completionHandler(nil) }
        if let url = request.url, let refusal = self.targets.refusal(of: url) {
            self.transfer.fail(attempt: self.attempt, TransferFailure(refusal.code, refusal.detail))
            return completionHandler(nil)
        }
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        switch space.authenticationMethod {
        case NSURLAuthenticationMethodServerTrust:
            guard self.plan.isInsecure, let trust = space.serverTrust else { break }
            return completionHandler(.useCredential, URLCredential(trust: trust))
        case NSURLAuthenticationMethodHTTPBasic, NSURLAuthenticationMethodHTTPDigest:
            guard challenge.previousFailureCount == 0, !space.isProxy(), let credential = self.plan.credential,
                credential.isAllowed(for: space.host), case .password(let user, let password) = credential.secret,
                let text = try? TLSMaterial.text(of: password)
            else { break }
            return completionHandler(.useCredential, URLCredential(user: user, password: text, persistence: .none))
        default: break
        }
        completionHandler(.performDefaultHandling, nil)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        // A streamed body cannot be sent twice.
        guard let pipe, !self.isBodyUsed.exchange(true, ordering: .relaxed) else { return completionHandler(nil) }
        completionHandler(PipeInputStream(pipe))
    }

    // MARK: Events

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.transfer.received(data, attempt: self.attempt)
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        self.transfer.downloaded(location, attempt: self.attempt)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        self.transfer.wrote(totalBytesWritten, of: totalBytesExpectedToWrite, attempt: self.attempt)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        self.transfer.resumed(at: fileOffset, attempt: self.attempt)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.transfer.measured(metrics, attempt: self.attempt)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.pipe?.close()
        self.transfer.completed(error, attempt: self.attempt)
    }
}

/// The error of a failed transfer.
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
        case .backgroundSessionWasDisconnected, .backgroundSessionInUseByAnotherProcess:
            self.init("daemon-unavailable", detail, isRetryable: true)
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

    var wireError: TransferError {
        TransferError {
            $0.code = self.code
            $0.detail = self.detail
            $0.retryable = self.isRetryable
        }
    }
}
