// UploadProgress BASE FILE: puts FILE to BASE/upload/progress and counts along, then loads it back.
import Foundation
import URLLoading

/// Touched on the session's delegate queue alone, and read once the upload has ended.
final class Upload: NSObject, URLSessionDataDelegate, @unchecked Sendable {
    private let finished = DispatchSemaphore(value: 0)
    private(set) var counts: [Int64] = []
    private(set) var isConsistent = true
    private(set) var failure: Error?

    func wait() -> Bool { self.finished.wait(timeout: .now() + 60) == .success }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        let before = self.counts.last ?? 0
        if before + bytesSent != totalBytesSent || totalBytesSent > totalBytesExpectedToSend
            || task.countOfBytesSent < totalBytesSent
        {
            self.isConsistent = false
        }
        self.counts.append(totalBytesSent)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        self.failure = error
        self.finished.signal()
    }
}

func fail(_ reason: String) -> Never {
    print(reason)
    exit(1)
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let url = URL(string: arguments[1] + "/upload/progress"),
    let wanted = FileManager.default.contents(atPath: arguments[2])
else {
    print("usage: UploadProgress BASE FILE")
    exit(64)
}

let upload = Upload()
let session = URLSession(configuration: .default, delegate: upload, delegateQueue: nil)
var put = URLRequest(url: url)
put.httpMethod = "PUT"
let task = session.uploadTask(with: put, fromFile: URL(fileURLWithPath: arguments[2]))
let progress = task.progress
task.resume()

guard upload.wait() else { fail("no end after 60 seconds") }
if let failure = upload.failure { fail("failed: \(failure)") }
guard let answer = task.response as? HTTPURLResponse, [201, 204].contains(answer.statusCode) else {
    fail("answered \(String(describing: task.response))")
}
guard upload.isConsistent, upload.counts.last == Int64(wanted.count) else { fail("counted \(upload.counts)") }
guard task.countOfBytesSent == Int64(wanted.count), task.countOfBytesExpectedToSend == Int64(wanted.count) else {
    fail("sent \(task.countOfBytesSent) of \(task.countOfBytesExpectedToSend) bytes")
}
guard progress.isFinished, progress.fractionCompleted == 1 else { fail("progress: \(progress)") }

let (back, _) = try await session.data(from: url)
guard back == wanted else { fail("\(back.count) bytes came back") }
print("sent \(wanted.count) bytes in \(upload.counts.count) steps")
session.invalidateAndCancel()
