import Foundation

extension SessionCore {
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
