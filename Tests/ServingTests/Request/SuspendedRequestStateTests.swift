// SuspendedRequestStateTests: which event ends a suspended request.

import Model
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct SuspendedRequestStateTests {
  @Test func `the first end of a request decides and resumes once`() throws {
    var state = SuspendedRequestState()
    #expect(state.workStarted() == [])
    #expect(state.interrupted(.failure(.deadlineExceeded)) == [.resume, .cancelWork])
    #expect(state.interrupted(.clientGone) == [])
    #expect(state.workEnded(.failure(.cancelled)) == [])
    guard case .failure(.deadlineExceeded)? = state.decided() else {
      Issue.record("the deadline did not decide")
      return
    }
  }

  @Test func `work that ends first is not cancelled`() {
    var state = SuspendedRequestState()
    #expect(state.workStarted() == [])
    #expect(state.workEnded(.failure(.sourceNotFound(status: 404))) == .resume)
    #expect(state.interrupted(.clientGone) == [])
  }

  @Test func `work that ends before its start is recorded is not cancelled`() {
    var state = SuspendedRequestState()
    #expect(state.workEnded(.failure(.draining)) == .resume)
    #expect(state.workStarted() == [])
  }

  @Test func `work that starts after the request's end is cancelled at once`() {
    var state = SuspendedRequestState()
    #expect(state.interrupted(.clientGone) == .resume)
    #expect(state.workStarted() == .cancelWork)
  }
}
