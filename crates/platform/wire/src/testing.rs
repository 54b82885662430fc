//! For tests: a gateway of which a test writes only the methods that it calls.

use tonic::codegen::BoxStream;
use tonic::{Request, Response, Status};

use crate::v1;
use crate::v1::gateway_server::{Gateway, GatewayServer};

/// What a method that streams answers.
pub type Responses<T> = BoxStream<T>;

/// Every method of the gateway has one row here.
macro_rules! stub {
    (
        unary { $($method:ident($request:ident) -> $response:ident;)+ }
        streams { $($streaming:ident($asked:ident) -> $stream:ident of $item:ident;)+ }
    ) => {
        /// A gateway for tests. What a test does not write answers `UNIMPLEMENTED`.
        #[tonic::async_trait]
        #[allow(missing_docs)] // as in `v1::gateway_server::Gateway`
        pub trait GatewayStub: Send + Sync + 'static {
            $(async fn $method(&self, _: Request<v1::$request>) -> Result<Response<v1::$response>, Status> {
                Err(Status::unimplemented(concat!("this test has no `", stringify!($method), "`")))
            })+

            $(async fn $streaming(&self, _: Request<v1::$asked>) -> Result<Response<Responses<v1::$item>>, Status> {
                Err(Status::unimplemented(concat!("this test has no `", stringify!($streaming), "`")))
            })+
        }

        #[tonic::async_trait]
        impl<T: GatewayStub> Gateway for Stub<T> {
            $(type $stream = Responses<v1::$item>;)+

            $(async fn $method(&self, request: Request<v1::$request>) -> Result<Response<v1::$response>, Status> {
                self.0.$method(request).await
            })+

            $(async fn $streaming(&self, request: Request<v1::$asked>) -> Result<Response<Self::$stream>, Status> {
                self.0.$streaming(request).await
            })+
        }
    };
}

stub! {
    unary {
        submit_task(SubmitTaskRequest) -> SubmitTaskResponse;
        get_task(GetTaskRequest) -> GetTaskResponse;
        list_tasks(ListTasksRequest) -> ListTasksResponse;
        cancel_task(CancelTaskRequest) -> CancelTaskResponse;
        pause_task(PauseTaskRequest) -> PauseTaskResponse;
        resume_task(ResumeTaskRequest) -> ResumeTaskResponse;
        give_input(GiveInputRequest) -> GiveInputResponse;
        retry_task(RetryTaskRequest) -> RetryTaskResponse;
        delete_task(DeleteTaskRequest) -> DeleteTaskResponse;
        list_tools(ListToolsRequest) -> ListToolsResponse;
        choose_tools(ChooseToolsRequest) -> ChooseToolsResponse;
    }
    streams {
        ask(AskRequest) -> AskStream of AskResponse;
        watch_task(WatchTaskRequest) -> WatchTaskStream of WatchTaskResponse;
        get_artifact(GetArtifactRequest) -> GetArtifactStream of GetArtifactResponse;
    }
}

/// A [`GatewayStub`] as the generated server takes it.
#[derive(Debug)]
pub struct Stub<T>(T);

/// The service of a stub.
pub fn gateway<T: GatewayStub>(stub: T) -> GatewayServer<Stub<T>> {
    GatewayServer::new(Stub(stub))
}
