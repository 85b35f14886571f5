import Foundation
import HTTPSemantics
import Synchronization

extension SessionCore {
    /// Whether the request of a task still goes to the origin that the program named. Looked at only where something
    /// hangs on it: an `Authorization` of the session's own.
    func isAtFirstOrigin(_ request: URLRequest, of task: URLSessionTask) -> Bool {
        guard self.hasOwnAuthorization else { return true }
        guard let first = task.facts.withLock({ $0.originalRequest?.url }).flatMap({ Origin($0) }),
            let origin = request.url.flatMap({ Origin($0) })
        else { return false }
        return RedirectRule.isSameOrigin(first, origin)
    }

    /// Whether a redirect is followed, and by which request; it is where nobody is asked.
    /// - Parameter answer: called once, on any thread.
    func askRedirect(
        _ response: HTTPURLResponse, to request: URLRequest, about task: URLSessionTask, of session: URLSession,
        _ answer: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let questions = self.faces(for: task).map { face in
            DelegateQuestion<URLRequest?>(
                face: face, method: .redirection, asyncMethod: .redirectionAsync,
                call: { face, once in
                    face.task?.urlSession(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: request
                    ) { once($0) }
                },
                callAsync: { face in
                    await face.task?.urlSession(
                        session, task: task, willPerformHTTPRedirection: response, newRequest: request)
                })
        }
        self.line.ask(questions) { answer($0 ?? request) }
    }
}
