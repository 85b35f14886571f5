import Foundation
import URLLoading

/// Also records the calls of data and upload tasks.
final class DataRecorder: Recorder, URLSessionDataDelegate, @unchecked Sendable {
    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        let status = (response as? HTTPURLResponse).map { " \($0.statusCode)" } ?? ""
        self.note("response\(status)") {
            $0.response = response
            $0.responses.append(response)
        }
        guard let answer = self.policies.response else { return completionHandler(.allow) }
        answer(response, completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.note("data", folding: true) {
            $0.data += data
            $0.pieces.append(data)
        }
        self.policies.data?(dataTask, self.notes.data)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didBecome downloadTask: URLSessionDownloadTask
    ) {
        self.note("became download") { $0.download = downloadTask }
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didBecome streamTask: URLSessionStreamTask) {
        self.note("became stream") { $0.streamTask = streamTask }
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, willCacheResponse proposedResponse: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        self.note("will cache") { $0.cached.append(proposedResponse) }
        if let asked = self.policies.cachingAsked { return asked.open() }
        completionHandler(self.policies.caching.map { $0(proposedResponse) } ?? proposedResponse)
    }
}

extension DataRecorder: URLSessionDownloadDelegate {
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        self.note("downloaded") {
            $0.file = location
            $0.fileContent = try? Data(contentsOf: location)
        }
        self.policies.downloaded?(location)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        self.note("written", folding: true) {
            $0.written.append(Sent(now: bytesWritten, total: totalBytesWritten, expected: totalBytesExpectedToWrite))
        }
        self.policies.written?(downloadTask, totalBytesWritten)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didResumeAtOffset fileOffset: Int64,
        expectedTotalBytes: Int64
    ) {
        self.note("resumed at \(fileOffset)") { $0.resumes.append((fileOffset, expectedTotalBytes)) }
    }
}
