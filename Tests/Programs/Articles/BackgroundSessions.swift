import Foundation
import URLLoading

/// The code of the article about background sessions, as it is printed there.
enum BackgroundSessions {
    static func download(_ url: URL, _ delegate: any URLSessionDownloadDelegate) {
        let configuration = URLSessionConfiguration.background(withIdentifier: "org.example.photos")
        let session = URLSession(configuration: configuration, delegate: delegate, delegateQueue: nil)
        let task = session.downloadTask(with: url)
        task.taskDescription = "summer.jpg"
        task.resume()
    }

    static func receiveEvents() {
        URLSession.handleBackgroundEvents { identifier, completionHandler in
            let configuration = URLSessionConfiguration.background(withIdentifier: identifier)
            let events = EventReceiver(completionHandler)
            _ = URLSession(configuration: configuration, delegate: events, delegateQueue: nil)
        }
    }

    private final class EventReceiver: NSObject, URLSessionDownloadDelegate, Sendable {
        private let completionHandler: @Sendable () -> Void

        init(_ completionHandler: @escaping @Sendable () -> Void) {
            self.completionHandler = completionHandler
        }

        func urlSession(
            _ session: URLSession, downloadTask: URLSessionDownloadTask, didFinishDownloadingTo location: URL
        ) {}

        func urlSessionDidFinishEvents(forBackgroundURLSession session: URLSession) { self.completionHandler() }
    }
}
