// DelegateStyle BASE FILE: loads BASE/moved, which leads to BASE/file, and compares it with FILE.
import Foundation
import URLLoading

final class Loading: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    var steps: [String] = []
    var received = Data()
    var expectedLength: Int64 = 0
    var error: Error?
    let finished = DispatchSemaphore(value: 0)

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        steps.append("redirection \(response.statusCode)")
        completionHandler(request)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        let status = (response as? HTTPURLResponse)?.statusCode ?? 0
        steps.append("response \(status)")
        expectedLength = response.expectedContentLength
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        if steps.last != "data" { steps.append("data") }
        received.append(data)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didFinishCollecting metrics: URLSessionTaskMetrics) {
        steps.append("metrics of \(metrics.transactionMetrics.count)")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        steps.append("completed")
        self.error = error
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: Error?) {
        steps.append("invalid")
        finished.signal()
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let url = URL(string: arguments[1] + "/moved"),
    let wanted = FileManager.default.contents(atPath: arguments[2])
else {
    print("usage: DelegateStyle BASE FILE")
    exit(64)
}

let loading = Loading()
let queue = OperationQueue()
queue.maxConcurrentOperationCount = 1
let session = URLSession(configuration: .ephemeral, delegate: loading, delegateQueue: queue)
let task = session.dataTask(with: url)
task.resume()
session.finishTasksAndInvalidate()

guard loading.finished.wait(timeout: .now() + 30) == .success else {
    print("no end after 30 seconds, and so far:", loading.steps)
    exit(1)
}
print(loading.steps.joined(separator: ", "))
if let error = loading.error {
    print("failed:", error.localizedDescription)
    exit(1)
}
let order = loading.steps.filter { !$0.hasPrefix("metrics") }
guard order == ["redirection 302", "response 200", "data", "completed", "invalid"] else {
    print("not the order of messages")
    exit(1)
}
guard loading.received == wanted, loading.expectedLength == Int64(wanted.count) else {
    print("\(loading.received.count) bytes of \(loading.expectedLength), not those of the file")
    exit(1)
}
