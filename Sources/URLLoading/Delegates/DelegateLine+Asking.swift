extension DelegateLine {
    /// Tells the first of `faces` that has the method. Nothing is scheduled where none can have it.
    func tell(
        _ faces: [DelegateFace], _ method: DelegateMethod, _ call: @escaping @Sendable (DelegateFace) -> Void
    ) {
        let faces = faces.filter { $0.mayAnswer(method) }
        guard !faces.isEmpty else { return }
        self.add {
            for face in faces where face.tell(method, { call(face) }) { return }
        }
    }

    /// Asks the first that answers.
    /// - Parameter completion: called once, on any thread; with `nil` where nobody has the method, and then at once if
    ///   that is known already.
    func ask<Answer: Sendable>(
        _ questions: [DelegateQuestion<Answer>], _ completion: @escaping @Sendable (Answer?) -> Void
    ) {
        let questions = questions.filter(\.mayBeAnswered)
        guard !questions.isEmpty else { return completion(nil) }
        self.add { self.ask(questions[...], completion) }
    }

    private func ask<Answer: Sendable>(
        _ questions: ArraySlice<DelegateQuestion<Answer>>, _ completion: @escaping @Sendable (Answer?) -> Void
    ) {
        guard let question = questions.first else { return completion(nil) }
        let face = question.face
        let answer = OnceAnswer<Answer> { completion($0) }
        if face.mayAnswer(question.method), face.tell(question.method, { question.call(face, answer) }) { return }
        guard face.mayAnswer(question.asyncMethod) else { return self.ask(questions.dropFirst(), completion) }
        Task {
            if let answer = await face.ask(question.asyncMethod, { await question.callAsync(face) }) {
                completion(answer)
            } else {
                self.add { self.ask(questions.dropFirst(), completion) }
            }
        }
    }
}
