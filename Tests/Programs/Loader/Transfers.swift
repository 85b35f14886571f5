import Foundation
import URLLoading

/// The delegate of a session: forwards calls to their transfer.
final class Transfers: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    private let answers: ChallengeAnswers
    private let lock = NSLock()
    private var transfers: [Int: Transfer] = [:]
    private var isInvalid = false
    private var waiter: CheckedContinuation<Void, Never>?

    init(answers: ChallengeAnswers) {
        self.answers = answers
    }

    func add(_ transfer: Transfer) {
        self.lock.withLock { self.transfers[transfer.task.taskIdentifier] = transfer }
    }

    private func of(_ task: URLSessionTask) -> Transfer? {
        self.lock.withLock { self.transfers[task.taskIdentifier] }
    }

    /// Waits for the last message of the session.
    func invalidated() async {
        await withCheckedContinuation { continuation in
            let isInvalid = self.lock.withLock { () -> Bool in
                if !self.isInvalid { self.waiter = continuation }
                return self.isInvalid
            }
            if isInvalid { continuation.resume() }
        }
    }

    // MARK: The session

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        let waiter = self.lock.withLock { () -> CheckedContinuation<Void, Never>? in
            self.isInvalid = true
            return self.waiter
        }
        waiter?.resume()
    }

    // MARK: Every task

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let space = challenge.protectionSpace
        let method = space.authenticationMethod.dropFirst("NSURLAuthenticationMethod".count)
        let place = space.realm.map { " '\($0)'" } ?? ""
        self.of(task)?.happened("challenge \(method)\(place) \(challenge.previousFailureCount)")
        let (disposition, credential) = self.answers.answer(challenge)
        completionHandler(disposition, credential)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let transfer = self.of(task)
        transfer?.happened(
            "redirection \(response.statusCode) to \(request.httpMethod ?? "") \(request.url?.path ?? "")")
        completionHandler(transfer?.actions.stayHere == true ? nil : request)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        let transfer = self.of(task)
        transfer?.happened("body wanted")
        completionHandler(transfer?.actions.stream.flatMap { InputStream(fileAtPath: $0) })
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.of(task)?.happened("sent")
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        self.of(task)?.happened("informational \(response.statusCode)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.of(task)?.collected(metrics)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.of(task)?.completed(error)
    }

    // MARK: Data tasks

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let transfer = self.of(dataTask)
        transfer?.happened("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(transfer?.actions.disposition ?? .allow)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        guard let transfer = self.of(dataTask) else { return }
        transfer.happened("became a download")
        transfer.became(downloadTask)
        self.add(transfer)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.of(dataTask)?.received(data)
    }

    // MARK: Download tasks

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        self.of(downloadTask)?.wrote(totalBytesWritten)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        self.of(downloadTask)?.happened("resumed at \(fileOffset) of \(expectedTotalBytes)")
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        self.of(downloadTask)?.downloaded(to: location)
    }
}
