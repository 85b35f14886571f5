// DownloadResume BASE FILE: cancels a download of BASE/slow/file, resumes it, and compares it with FILE.
import Foundation
import URLLoading

/// Touched on the session's delegate queue alone.
final class Download: NSObject, URLSessionDownloadDelegate, @unchecked Sendable {
    private let breakOff: Int64
    private let finished = DispatchSemaphore(value: 0)
    private var isBrokenOff = false
    private(set) var resumeOffset: Int64?
    private(set) var content: Data?
    private(set) var failure: Error?

    init(breakOffAfter bytes: Int64) {
        self.breakOff = bytes
    }

    func run(_ url: URL) -> Bool {
        let queue = OperationQueue()
        queue.maxConcurrentOperationCount = 1
        let session = URLSession(configuration: .default, delegate: self, delegateQueue: queue)
        session.downloadTask(with: url).resume()
        defer { session.invalidateAndCancel() }
        return self.finished.wait(timeout: .now() + 60) == .success
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        guard !self.isBrokenOff, totalBytesWritten >= self.breakOff else { return }
        self.isBrokenOff = true
        print("broken off after \(totalBytesWritten) of \(totalBytesExpectedToWrite) bytes")
        downloadTask.cancel(byProducingResumeData: { resumeData in
            guard let resumeData = resumeData else {
                print("no resume data")
                exit(1)
            }
            session.downloadTask(withResumeData: resumeData).resume()
        })
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        print("resumes at \(fileOffset) of \(expectedTotalBytes) bytes")
        self.resumeOffset = fileOffset
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        self.content = try? Data(contentsOf: location)
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        if let error = error as? URLError, error.code == .cancelled, self.content == nil, self.resumeOffset == nil {
            return
        }
        self.failure = error
        self.finished.signal()
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let url = URL(string: arguments[1] + "/slow/file"),
    let wanted = FileManager.default.contents(atPath: arguments[2])
else {
    print("usage: DownloadResume BASE FILE")
    exit(64)
}

let download = Download(breakOffAfter: Int64(wanted.count / 4))
guard download.run(url) else {
    print("no end after 60 seconds")
    exit(1)
}
if let failure = download.failure {
    print("failed:", failure)
    exit(1)
}
guard let offset = download.resumeOffset, offset > 0, offset < Int64(wanted.count) else {
    print("did not go on where it was broken off")
    exit(1)
}
guard download.content == wanted else {
    print("another file of \(download.content?.count ?? 0) bytes")
    exit(1)
}
