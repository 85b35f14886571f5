import Foundation
import URLLoading

/// The code of the articles about transfers, as it is printed there.
enum Transfers {
    static func load(_ url: URL) async throws -> String {
        let (data, response) = try await URLSession.shared.data(from: url)
        guard (response as? HTTPURLResponse)?.statusCode == 200 else { throw URLError(.badServerResponse) }
        return String(decoding: data, as: UTF8.self)
    }

    static func loadInTheOldStyle(_ url: URL) {
        let task = URLSession.shared.dataTask(with: url) { data, response, error in
            if let error { return print("not loaded:", error.localizedDescription) }
            print((response as? HTTPURLResponse)?.statusCode ?? 0, data?.count ?? 0)
        }
        task.resume()
    }

    final class Collector: NSObject, URLSessionDataDelegate, @unchecked Sendable {
        private var body = Data()

        func urlSession(
            _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse
        ) async -> URLSession.ResponseDisposition {
            response.expectedContentLength > 10_000_000 ? .becomeDownload : .allow
        }

        func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
            self.body.append(data)
        }

        func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
            print("over:", error?.localizedDescription ?? "\(self.body.count) bytes")
        }
    }

    static func collect(_ url: URL) {
        let session = URLSession(configuration: .default, delegate: Collector(), delegateQueue: nil)
        session.dataTask(with: url).resume()
        session.finishTasksAndInvalidate()
    }

    static func upload(_ file: URL, to url: URL) async throws {
        var request = URLRequest(url: url)
        request.httpMethod = "PUT"
        let (_, response) = try await URLSession.shared.upload(for: request, fromFile: file)
        print((response as? HTTPURLResponse)?.statusCode ?? 0)
    }

    static func pauseAndGoOn(_ task: URLSessionUploadTask, in session: URLSession) async {
        guard let resumeData = await task.cancelByProducingResumeData() else { return }
        session.uploadTask(withResumeData: resumeData).resume()
    }

    static func download(_ url: URL, to place: URL) async throws {
        let (file, _) = try await URLSession.shared.download(from: url)
        try FileManager.default.moveItem(at: file, to: place)
    }

    static func stopAndGoOn(_ task: URLSessionDownloadTask, in session: URLSession) async {
        guard let resumeData = await task.cancelByProducingResumeData() else { return }
        session.downloadTask(withResumeData: resumeData).resume()
    }

    static func countLines(_ url: URL) async throws -> Int {
        let (bytes, _) = try await URLSession.shared.bytes(from: url)
        var count = 0
        for try await line in bytes.lines where !line.hasPrefix("#") { count += 1 }
        return count
    }
}
