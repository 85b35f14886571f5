import Foundation
import URLLoading

/// Runs an action within the delegate method of the given name, as a program that cancels there.
final class CancellingRecorder: Recorder, URLSessionDataDelegate, @unchecked Sendable {
    private let point: String
    private let work: @Sendable () -> Void

    init(_ policies: Policies, at point: String, _ work: @escaping @Sendable () -> Void) {
        self.point = point
        self.work = work
        super.init(policies)
    }

    override func note(_ event: String, folding: Bool = false, _ body: (inout Recording) -> Void = { _ in }) {
        super.note(event, folding: folding, body)
        if event == self.point { self.work() }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        self.note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data") { $0.data += data }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.note("will cache")
        completionHandler(proposedResponse)
    }
}
