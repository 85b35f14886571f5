import Foundation
import URLLoading

/// The delegate of a simulated session. Everything happens on the test's thread.
final class SimulatedDelegate: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    var tasks: [Int: SimulatedTask] = [:]
    private(set) var invalidations = 0
    private(set) var complaints: [String] = []
    private var lateAnswers: [() -> Void] = []

    /// Gives the deferred answers.
    func answerLate() {
        let answers = self.lateAnswers
        self.lateAnswers = []
        for answer in answers { answer() }
    }

    private func find(_ task: URLSessionTask, _ event: String) -> SimulatedTask? {
        if self.invalidations > 0 { self.complaints.append("\(event) after the session's end") }
        guard let found = self.tasks[task.taskIdentifier] else {
            self.complaints.append("\(event) of an unknown task")
            return nil
        }
        return found
    }

    private func answer(_ task: SimulatedTask?, _ body: @escaping () -> Void) {
        if task?.hesitates == true { self.lateAnswers.append(body) } else { body() }
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        self.invalidations += 1
        if let open = self.tasks.values.first(where: { !$0.isOver }) {
            self.complaints.append("invalid before the end of task \(open.number)")
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let found = self.find(task, "redirect")
        found?.note("redirect")
        self.answer(found) { completionHandler(found?.followsRedirect == true ? request : nil) }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping @Sendable (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        let found = self.find(task, "challenge")
        found?.note("challenge")
        // That of the proxy is in the configuration.
        let isOfProxy = challenge.protectionSpace.isProxy()
        self.answer(found) {
            completionHandler(isOfProxy ? .performDefaultHandling : .useCredential, isOfProxy ? nil : found?.credential)
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.find(task, "sent")?.sent(bytesSent, total: totalBytesSent, expected: totalBytesExpectedToSend)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse
    ) {
        self.find(task, "informational")?.note("informational")
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let found = self.find(dataTask, "response")
        if found?.isDelegate == false { found?.complain("a response beside the completion handler") }
        found?.received(response)
        self.answer(found) { completionHandler(found?.disposition ?? .allow) }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.find(dataTask, "data")?.received(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        self.find(task, "metrics")?.note("metrics")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.find(task, "complete")?.completed(error)
    }
}
