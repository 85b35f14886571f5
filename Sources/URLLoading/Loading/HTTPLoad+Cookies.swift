import Foundation
import HTTPTransport

extension HTTPLoad {
    /// Sends the request as it is now, once its cookies and its body are there.
    func send() {
        self.cookies = nil
        guard self.core.asksForCookies(of: self.request) else { return self.sendBody() }
        self.tellRequest()
        self.core.askForCookies(
            of: self.transfer.task,
            self.awaiting { load, cookies in
                load.cookies = cookies
                load.sendBody()
            })
    }

    /// Keeps the cookies of an answer, before anybody is told of it.
    func keepCookies(_ lines: [HeaderField], from url: URL) {
        self.core.keepCookies(lines, from: url, request: self.request, of: self.transfer.task)
    }
}
