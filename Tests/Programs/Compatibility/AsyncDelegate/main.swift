// AsyncDelegate BASE FILE: awaits BASE/file and an upload of FILE, and prints the calls of their task delegate.
import Foundation
import URLLoading

final class Listener: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate, @unchecked Sendable {
    private let lock = NSLock()
    private var steps: [String] = []
    private var received = Data()
    private var written: Int64 = 0

    private func note(_ step: String) {
        lock.lock()
        if steps.last != step { steps.append(step) }
        lock.unlock()
    }

    func record() -> (steps: String, received: Data, written: Int64) {
        lock.lock()
        defer { lock.unlock() }
        return (steps.joined(separator: ", "), received, written)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        note("response \((response as? HTTPURLResponse)?.statusCode ?? 0)")
        completionHandler(.allow)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        note("data")
        lock.lock()
        received.append(data)
        lock.unlock()
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        note("sent")
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        note("written")
        lock.lock()
        written = totalBytesWritten
        lock.unlock()
    }

    func urlSession(_ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL) {
        note("file")
    }

    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
        note("completed")
    }
}

let arguments = CommandLine.arguments
guard arguments.count == 3, let base = URL(string: arguments[1]),
    let wanted = FileManager.default.contents(atPath: arguments[2])
else {
    print("usage: AsyncDelegate BASE FILE")
    exit(64)
}

do {
    let session = URLSession(configuration: .ephemeral)
    let file = base.appendingPathComponent("file")

    let loading = Listener()
    let (data, _) = try await session.data(from: file, delegate: loading)
    print("data: \(loading.record().steps)", data == wanted && loading.record().received == wanted)

    let uploading = Listener()
    var put = URLRequest(url: base.appendingPathComponent("upload/delegate"))
    put.httpMethod = "PUT"
    _ = try await session.upload(for: put, from: wanted, delegate: uploading)
    print("upload: \(uploading.record().steps.split(separator: ",").first ?? "")")

    let downloading = Listener()
    let (place, _) = try await session.download(from: file, delegate: downloading)
    let isWhole = FileManager.default.contents(atPath: place.path) == wanted
    try FileManager.default.removeItem(at: place)
    print("download: \(downloading.record().steps)", isWhole && downloading.record().written == Int64(wanted.count))
    session.invalidateAndCancel()
} catch {
    print("failed:", error)
    exit(1)
}
