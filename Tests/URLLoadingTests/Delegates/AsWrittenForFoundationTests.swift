import Foundation
import Testing
import URLLoading

/// Delegates as programs for Foundation write them: conformances in separate extensions, closures without `@Sendable`,
/// methods by `#function`.
@Suite("Delegates written for Foundation", .loading, .timeLimit(.minutes(20)))
struct AsWrittenForFoundationTests {
    final class Written: NSObject, URLSessionDelegate, @unchecked Sendable {
        let log = EventLog()
        let done = Outcome<(any Error)?>()
        var data: Data?

        func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
            self.log.add(#function)
        }

        func urlSession(
            _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
            completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
        ) {
            if !challenge.isOfTheVariant { self.log.add(#function) }
            completionHandler(.performDefaultHandling, nil)
        }
    }

    @Test func delegateMethodsHaveFoundationsNames() async throws {
        let server = try await WebServer(["/": .redirect(307, to: "/asks")])
        server.on("/asks", BasicAuthenticationTests.guarded())
        let written = Written()
        let session = URLSession(configuration: .test, delegate: written, delegateQueue: nil)
        session.uploadTask(withStreamedRequest: .to(server.url(), "PUT")).resume()
        #expect(try await written.done.value() == nil)
        session.finishTasksAndInvalidate()
        #expect(await written.log.has("urlSession(_:didBecomeInvalidWithError:)"))
        #expect(
            written.log.names == [
                "urlSession(_:task:needNewBodyStream:)",
                "urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)",
                "urlSession(_:task:willPerformHTTPRedirection:newRequest:completionHandler:)",
                "urlSession(_:task:needNewBodyStream:)",
                "urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)",
                "urlSession(_:task:didReceive:completionHandler:)", "urlSession(_:task:needNewBodyStream:)",
                "urlSession(_:task:didSendBodyData:totalBytesSent:totalBytesExpectedToSend:)",
                "urlSession(_:dataTask:didReceive:completionHandler:)", "urlSession(_:dataTask:didReceive:)",
                "urlSession(_:task:didCompleteWithError:)", "urlSession(_:didBecomeInvalidWithError:)",
            ])
        #expect(written.data == Data("in".utf8))
    }

    @Test func extensionsDownloadToo() async throws {
        let server = try await WebServer(["/": .text("hello")])
        let written = Written()
        let session = URLSession(configuration: .test, delegate: written, delegateQueue: nil)
        session.downloadTask(with: server.url()).resume()
        #expect(try await written.done.value() == nil)
        #expect(
            written.log.names == [
                "urlSession(_:downloadTask:didWriteData:totalBytesWritten:totalBytesExpectedToWrite:)",
                "urlSession(_:downloadTask:didFinishDownloadingTo:)", "urlSession(_:task:didCompleteWithError:)",
            ])
        session.invalidateAndCancel()
    }
}

extension AsWrittenForFoundationTests.Written: URLSessionTaskDelegate {
    func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?) {
        self.log.add(#function)
        self.done.give(error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData bytesSent: Int64, totalBytesSent: Int64,
        totalBytesExpectedToSend: Int64
    ) {
        self.log.add(#function, folding: true)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping (InputStream?) -> Void
    ) {
        self.log.add(#function)
        completionHandler(InputStream(data: Data("body".utf8)))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceive challenge: URLAuthenticationChallenge,
        completionHandler: @escaping (URLSession.AuthChallengeDisposition, URLCredential?) -> Void
    ) {
        self.log.add(#function)
        completionHandler(.useCredential, URLCredential(user: "user", password: "passwd", persistence: .none))
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
        newRequest request: URLRequest, completionHandler: @escaping (URLRequest?) -> Void
    ) {
        self.log.add(#function)
        completionHandler(request)
    }
}

extension AsWrittenForFoundationTests.Written: URLSessionDataDelegate {
    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
        self.log.add(#function, folding: true)
        self.data = (self.data ?? Data()) + data
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping (URLSession.ResponseDisposition) -> Void
    ) {
        self.log.add(#function)
        completionHandler(.allow)
    }
}

extension AsWrittenForFoundationTests.Written: URLSessionDownloadDelegate {
    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData bytesWritten: Int64,
        totalBytesWritten: Int64, totalBytesExpectedToWrite: Int64
    ) {
        self.log.add(#function, folding: true)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
    ) {
        self.log.add(#function)
    }
}
